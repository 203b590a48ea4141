"""How long a launcher takes, what it costs, and how quickly it brings workers back.

Workers are shell scripts of one line, so that the launcher is all there is to see. `direct` starts
the same workers without a launcher: the floor. lrun's own share is its time less that floor.
"""

import argparse
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from figures import Figures, against

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LRUN = os.path.join(ROOT, 'build/bin/lrun')
LIMIT = 60
OWN_SHARE_S, CPU_S, MEMORY_MB, RESTART_S = 0.030, 0.020, 12, 0.030


class Try:
    """One launch in a folder of its own, ended and removed whatever happens."""

    def __init__(self, command, worker, nproc):
        self.folder = tempfile.mkdtemp(prefix='lrun-bench-')
        self.lines = os.path.join(self.folder, 'lines')
        self.worker = os.path.join(self.folder, 'worker')
        with open(self.worker, 'w', encoding='utf-8') as file:
            file.write(f'#!/bin/sh\n{worker}\n')
        os.chmod(self.worker, 0o755)
        self.nproc = nproc
        self.command = [word.format(worker=self.worker, nproc=nproc) for word in command]
        self.processes = []

    def __enter__(self):
        environment = {name: value for name, value in os.environ.items() if 'LRUN_' not in name}
        environment.update(XDG_RUNTIME_DIR=self.folder, TMPDIR=self.folder, LINES_FILE=self.lines)
        self.began = time.monotonic()
        copies = self.nproc if self.command[0] == self.worker else 1
        self.processes = [
            subprocess.Popen(
                self.command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            for _ in range(copies)
        ]
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def seen(self):
        try:
            with open(self.lines, encoding='utf-8') as file:
                return file.read().split()
        except OSError:
            return []

    def until(self, count):
        """Seconds from the start until `count` workers have written their line."""
        while len(self.seen()) < count:
            if time.monotonic() > self.began + LIMIT:
                raise TimeoutError(f'{len(self.seen())} of {count} lines')
            time.sleep(0.0005)
        return time.monotonic() - self.began

    def wait(self):
        for process in self.processes:
            process.wait(LIMIT)


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def launch_once(command, nproc):
    before = cpu_of_children()
    with Try(command, 'echo $$ >> "$LINES_FILE"', nproc) as one:
        first_line = one.until(nproc)
        one.wait()
    return first_line, cpu_of_children() - before


def proportional_memory(pid):
    """MB of the process and its descendants, shells and sleeps of the workers left out."""
    total, pending = 0, [pid]
    while pending:
        one = pending.pop()
        try:
            with open(f'/proc/{one}/task/{one}/children', encoding='utf-8') as file:
                pending += [int(child) for child in file.read().split()]
            if os.path.realpath(f'/proc/{one}/exe') != os.path.realpath(LRUN):
                continue
            with open(f'/proc/{one}/smaps_rollup', encoding='utf-8') as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith('Pss:'))
        except OSError:
            continue
    return total / 1024


def memory_once(command, nproc):
    with Try(command, 'echo $$ >> "$LINES_FILE"; sleep 60 & wait', nproc) as one:
        one.until(nproc)
        time.sleep(0.5)  # the socket for lrun status opens after the workers have started
        return proportional_memory(one.processes[0].pid)


def restart_once(command, nproc):
    """Seconds from kill -9 of a worker until all have written again."""
    with Try(command, 'echo $$ >> "$LINES_FILE"; sleep 60 & wait', nproc) as one:
        one.until(nproc)
        time.sleep(0.1)
        victim = int(one.seen()[0])
        began = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        one.until(2 * nproc)
        return time.monotonic() - began


def repeated(measure, runs):
    values, failed = [], 0
    for _ in range(runs):
        try:
            values.append(measure())
        except (TimeoutError, subprocess.TimeoutExpired, OSError) as error:
            print(f'# {error}', file=sys.stderr)
            failed += 1
    return values, failed


def launchers(torchrun):
    found = {
        'direct': ['{worker}'],
        'lrun': [LRUN, '--nproc-per-node={nproc}', '--max-restarts=1', '--no-python', '{worker}'],
    }
    if torchrun:
        options = ['--nproc-per-node={nproc}', '--max-restarts=1', '--no-python', '{worker}']
        found['torchrun'] = [torchrun, '--standalone', *options]
    return found


def measure_launch(figures, commands, nproc, runs):
    collected = {peer: ([], 0) for peer in commands}
    for _ in range(runs):  # in turns: what disturbs one disturbs all
        for peer, command in commands.items():
            values, failed = repeated(lambda c=command: launch_once(c, nproc), 1)
            collected[peer] = (collected[peer][0] + values, collected[peer][1] + failed)
    params = {'shape': f'1x{nproc}', 'worker': 'sh'}
    times = {peer: [first for first, _ in values] for peer, (values, _) in collected.items()}
    costs = {peer: [cpu for _, cpu in values] for peer, (values, _) in collected.items()}
    medians = {peer: statistics.median(values) for peer, values in times.items() if values}
    for peer, (_, failed) in collected.items():
        if peer != 'lrun':
            figures.add('launch.first_line', peer, params, 's', times[peer], failed)
            figures.add('launch.cpu', peer, params, 's', costs[peer], failed)
    if 'lrun' not in medians:
        return
    own = [max(0.0, value - medians['direct']) for value in times['lrun']]
    share = statistics.median(own)
    keys = against(OWN_SHARE_S, share, medians.get('torchrun'))
    figures.add('launch.own_share', 'lrun', params, 's', own, collected['lrun'][1], **keys)
    cpu = statistics.median(costs['lrun']) - statistics.median(costs['direct'])
    figures.add('launch.cpu', 'lrun', params, 's', costs['lrun'], **against(CPU_S, cpu))


def measure(words):
    parser = argparse.ArgumentParser(prog='bench/run launch', description=__doc__)
    parser.add_argument('--runs', type=int, default=9)
    parser.add_argument('--torchrun', default=os.path.join(ROOT, '.venv-peer/bin/torchrun'))
    options = parser.parse_args(words)
    torchrun = options.torchrun if os.access(options.torchrun, os.X_OK) else ''
    if not torchrun:
        print('# no torchrun: scripts/deps --peer, or --torchrun PATH', file=sys.stderr)
    figures, commands = Figures(), launchers(torchrun)
    for nproc in (1, 4):
        measure_launch(figures, commands, nproc, options.runs)
    values, failed = repeated(lambda: memory_once(commands['lrun'], 1), 3)
    median = statistics.median(values) if values else None
    keys = against(MEMORY_MB, median)
    figures.add('launch.memory', 'lrun', {'shape': '1x1'}, 'MB', values, failed, **keys)
    for peer in [name for name in commands if name != 'direct']:
        values, failed = repeated(lambda p=peer: restart_once(commands[p], 4), options.runs)
        median = statistics.median(values) if values else None
        keys = against(RESTART_S, median) if peer == 'lrun' else {}
        figures.add('launch.restart', peer, {'shape': '1x4'}, 's', values, failed, **keys)
    return figures.printed
