"""Checks Grafana dashboard JSON files against the types of Grafana's Foundation SDK.

    check.py FILE.json ..

An unknown field, a wrong type or word, a null and a missing required field is a problem. The
options and field settings of known panel types and the queries of known data sources are checked
too; Grafana fills in what options leave out, so nothing is required in those. `house_rules` has
what the types cannot express.
"""

import enum
import functools
import json
import re
import sys
import typing

from grafana_foundation_sdk.cog import plugins, runtime, variants
from grafana_foundation_sdk.models import dashboard as sdk

plugins.register_default_plugins()
# state of Grafana's query editor, which it exports and no type has
EDITOR = {'disableTextWrap', 'fullMetaSearch', 'includeNullMetadata', 'useBackend'}
NAMES = {
    str: 'a string',
    int: 'an integer',
    float: 'a number',
    bool: 'a boolean',
    list: 'a list',
    dict: 'an object',
}


@functools.cache
def fields(cls):
    """JSON name: (type, always written, constant) of each field of an SDK class."""
    hints, probe = typing.get_type_hints(cls), cls.__new__(cls)
    for a in hints:
        setattr(probe, a, None)
    always = set(probe.to_json())
    for a in hints:
        setattr(probe, a, a)
    settable = cls.__init__.__code__.co_varnames
    return {
        name: (hints[a], name in always, None if a in settable else getattr(cls(), a, None))
        for name, a in probe.to_json().items()
    }


def kind(t):
    """The constant "type" of an SDK class, if it has one."""
    return fields(t).get('type', (None,))[-1] if hasattr(t, 'to_json') else None


def optional(t):
    return type(None) in typing.get_args(t)


def hooked(hook):
    """The SDK class whose from_json is registered for a panel type or data source; else any."""
    return getattr(hook, '__self__', object)


def query_type(query, panel):
    for owner in (query, panel):
        source = owner.get('datasource') if isinstance(owner, dict) else None
        if isinstance(source, dict) and source.get('type'):
            known = runtime.Runtime().dataquery_variants.get(str(source['type']))
            return hooked(known and known.from_json_hook)
    return object


def check(t, v, at, partial=False, panel=None):
    """Problems of the JSON value v, found at path `at`, as a value of type t."""
    origin, args = typing.get_origin(t), typing.get_args(t)

    def wrong(what):
        return [f'{at}: {json.dumps(v)[:60]} is not {what}']

    if t is variants.Dataquery:
        t = query_type(v, panel)
        if t is object:
            return [] if isinstance(v, dict) else wrong(NAMES[dict])
    if t in (object, typing.Any):
        return []
    if origin is typing.Union:
        tries = [a for a in args if a is not type(None)]
        if isinstance(v, dict):  # the member that is meant, by its "type"
            tries = (
                [a for a in tries if kind(a) == v.get('type')]
                or [a for a in tries if kind(a) is None]
                or tries
            )
        return min((check(a, v, at, partial, panel) for a in tries), key=len)
    if origin is typing.Literal:
        return [] if v in args else wrong('one of ' + ', '.join(map(str, args)))
    if isinstance(t, type) and issubclass(t, enum.Enum):
        words = [e.value for e in t]
        return (
            []
            if v in words and not isinstance(v, bool)
            else wrong('one of ' + ', '.join(map(str, words)))
        )
    if t in (str, int, float, bool):
        ok = isinstance(v, (int, float) if t is float else t) and (
            t is bool or not isinstance(v, bool)
        )
        return [] if ok else wrong(NAMES[t])
    if origin is list:
        if not isinstance(v, list):
            return wrong(NAMES[list])
        return [p for i, x in enumerate(v) for p in check(args[0], x, f'{at}[{i}]', partial, panel)]
    if not isinstance(v, dict):
        return wrong(NAMES[dict])
    if origin is dict:
        return [p for k, x in v.items() for p in check(args[1], x, f'{at}.{k}', partial, panel)]
    return check_fields(t, v, at, partial, panel)


def check_fields(t, v, at, partial, panel):
    """Problems of the object v, field by field, as an instance of the SDK's class t."""
    known, problems = fields(t), []
    panel = v if t is sdk.Panel else panel
    plugin = runtime.panelcfg_config(str(panel.get('type'))) if panel else None
    for name, x in v.items():
        here = f'{at}.{name}'
        if name not in known:
            if name in EDITOR and issubclass(t, variants.Dataquery):
                continue
            problems.append(f'{here}: unknown field of {t.__name__}')
            continue
        ft, always, constant = known[name]
        if x is None and (optional(ft) and always or (t, name) == (sdk.Dashboard, 'id')):
            continue
        if constant is not None and x != constant:
            problems.append(f'{here}: {json.dumps(x)[:60]} is not {constant}')
        elif plugin and (t, name) == (sdk.Panel, 'options'):
            problems += check(hooked(plugin.options_from_json_hook), x, here, partial=True)
        elif plugin and (t, name) == (sdk.FieldConfig, 'custom'):
            problems += check(hooked(plugin.field_config_from_json_hook), x, here, partial=True)
        else:
            problems += check(ft, x, here, partial, panel)
    if not partial and t is not sdk.Dashboard:
        problems += [
            f'{at}: {n} is missing'
            for n, (ft, always, _) in known.items()
            if always and not optional(ft) and n not in v
        ]
    return problems


def house_rules(d):
    def dicts(x):
        return [y for y in x if isinstance(y, dict)] if isinstance(x, list) else []

    def get(x, *keys):
        for k in keys:
            x = x.get(k) if isinstance(x, dict) else None
        return x

    panels = [q for p in dicts(d.get('panels')) for q in [p, *dicts(p.get('panels'))]]
    ids = [json.dumps(p.get('id')) for p in panels]
    if d.get('id') is not None:
        yield '.id must be null or absent: it belongs to one Grafana instance'
    if not d.get('uid'):
        yield 'no uid: links and provisioning need a stable one'
    if len(set(ids)) != len(ids):
        yield 'panel ids are not unique'
    for p in panels:
        if p.get('type') == 'row':
            continue
        name, targets = f'panel "{p.get("title")}"', dicts(p.get('targets'))
        if not p.get('title'):
            yield f'panel {p.get("id")} has no title'
        if not p.get('description'):
            yield f'{name} has no description'
        if not p.get('gridPos'):
            yield f'{name} has no gridPos'
        if targets and not get(p, 'fieldConfig', 'defaults', 'unit'):
            yield f'{name} has no unit'
        for t in [p, *targets]:
            uid = get(t, 'datasource', 'uid')
            if uid and not re.search(r'^\$\{?\w+\}?$|^-- ', str(uid)):
                yield f"{name} names one instance's data source; use a variable"
        for t in targets:
            expr = str(t.get('expr', ''))
            if re.search(r'\[\d+[smh]\]', expr) and re.search(r'\b(rate|irate)\(', expr):
                yield f'{name}: rate() over a fixed window; use $__rate_interval'


def main(files):
    if not files:
        print('usage: check.py FILE.json ..', file=sys.stderr)
        return 2
    problems = []
    for name in files:
        try:
            with open(name, encoding='utf-8') as f:
                d = json.load(f)
        except (OSError, ValueError) as e:
            problems.append(f'{name}: {e}')
            continue
        found = check(sdk.Dashboard, d, '$') + (list(house_rules(d)) if isinstance(d, dict) else [])
        problems += [f'{name}: {p}' for p in found]
    for p in problems:
        print(p)
    print(f'{len(files)} dashboard(s), {len(problems)} problem(s)')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
