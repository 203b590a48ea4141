"""One JSON line a figure, in the form that all benches share."""

import json
import os
import statistics


class Figures:
    """Prints figures as they come, and keeps them for the check of targets."""

    def __init__(self):
        self.printed = []

    def add(self, bench, peer, params, unit, values, failed=0, **more):
        figure = {
            'bench': bench,
            'peer': peer,
            'params': params,
            'unit': unit,
            'median': round(statistics.median(values), 6) if values else None,
            'min': round(min(values), 6) if values else None,
            'max': round(max(values), 6) if values else None,
            'runs': len(values),
            'failed': failed,
            'load1': round(os.getloadavg()[0], 2),
            **more,
        }
        print(json.dumps(figure), flush=True)
        self.printed.append(figure)
        return figure


def against(target, value, theirs=None):
    """The keys of a figure with a target: at most `target`; `theirs` is the peer's median."""
    keys = {'target': target, 'met': value is not None and value <= target}
    if theirs and value:
        keys['ratio'] = round(theirs / value, 2)
    return keys
