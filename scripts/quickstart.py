#!/usr/bin/env python3
"""The two training runs of scripts/quickstart, and their comparison. Standard library only.

Starts lrun, follows it through its metrics as Prometheus would, kills one worker of its own
children in the second run, and prints what came of it. Exit 0 only if both ended equal.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / 'build/bin'
FOLDER = ROOT / 'lrun-quickstart'
CONFIG = ROOT / 'trainer/examples/fashion_mnist.yaml'
NODES, WORKERS_A_NODE, RESTARTS = 2, 2, 3
VICTIM_RANK = 2
KILL_AT = 0.4  # of all steps: in the middle of an epoch
ACCURACY_LEAST = 0.88
RUN_LIMIT_SECONDS = 600
LOOK_SECONDS = 0.02
SHOW_SECONDS = 5  # without a terminal

ENDPOINT = re.compile(r'127\.0\.0\.1:(\d+)/metrics')
SAMPLE = re.compile(r'^(\w+)(\{[^}]*\})? (\S+)$', re.M)
ACCURACY = re.compile(r'test accuracy: ([\d.]+) %')
WEIGHTS = re.compile(r'weights sha256: ([0-9a-f]{64}) \(step (\d+)\)')


class Failed(Exception):
    """One line for the user."""


class Job:
    """One run of lrun: its process, its log and its numbers."""

    def __init__(self, name):
        self.name = name
        self.folder = FOLDER / name
        self.log = self.folder / 'lrun.log'
        self.folder.mkdir(parents=True)
        self.words = [
            'lrun',
            '--standalone',
            '--nnodes',
            str(NODES),
            '--nproc',
            str(WORKERS_A_NODE),
            '--max-restarts',
            str(RESTARTS),
            '--metrics-port',
            '0',
            '--log-dir',
            str(self.folder / 'workers'),
            '--tee',
            '3',
            'lrun-train',
            'fit',
            '--config',
            str(CONFIG),
            f'trainer.default_root_dir={self.folder / "run"}',
            'trainer.log_every_n_steps=10',
        ]
        self.last_step = 0
        self._shown = 0.0
        with open(self.log, 'wb') as log:
            self.process = subprocess.Popen(
                [str(PROGRAMS / self.words[0]), *self.words[1:]],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def text(self):
        return self.log.read_text(encoding='utf-8', errors='replace')

    def numbers(self):
        """{(port, metric, labels): value} of every endpoint that answers."""
        found = {}
        for port in sorted(set(ENDPOINT.findall(self.text()))):
            try:
                with urllib.request.urlopen(
                    f'http://127.0.0.1:{port}/metrics', timeout=5
                ) as answer:
                    text = answer.read().decode()
            except (urllib.error.URLError, OSError):
                continue
            for metric, labels, value in SAMPLE.findall(text):
                found[port, metric, labels] = float(value)
        return found

    def is_running(self):
        return self.process.poll() is None

    def follow(self, until=lambda numbers: None):
        """Shows progress until the job ends, or until `until` has a value for its numbers."""
        end = time.monotonic() + RUN_LIMIT_SECONDS
        while self.is_running():
            numbers = self.numbers()
            self.show(numbers)
            value = until(numbers)
            if value is not None:
                return value
            if time.monotonic() > end:
                raise Failed(f'{self.name} did not end within {RUN_LIMIT_SECONDS} s')
            time.sleep(LOOK_SECONDS)
        return None

    def show(self, numbers):
        step = max(steps_of(numbers).values(), default=0)
        on_terminal = sys.stdout.isatty()
        now = time.monotonic()
        if on_terminal:
            print(f'\r\033[K  {self.name}: step {int(step)}', end='', flush=True)
        elif now - self._shown >= SHOW_SECONDS:
            self._shown = now
            print(f'  {self.name}: step {int(step)}', flush=True)

    def finish(self):
        """(accuracy, SHA-256) of a job that has ended; raises Failed otherwise."""
        self.follow()
        if sys.stdout.isatty():
            print('\r\033[K', end='')
        text = self.text()
        accuracy, weights = ACCURACY.findall(text), WEIGHTS.findall(text)
        if self.process.returncode != 0 or not accuracy or not weights:
            tail = '\n'.join(text.splitlines()[-15:])
            raise Failed(
                f'{self.name} ended with {self.process.returncode}; log: {self.log}\n{tail}'
            )
        sha256, step = weights[-1]
        self.last_step = int(step)
        return float(accuracy[-1]) / 100, sha256

    def stop(self):
        if self.is_running():
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(40)
            except subprocess.TimeoutExpired:
                self.process.kill()


def steps_of(numbers):
    return {key: value for key, value in numbers.items() if key[1] == 'lrun_worker_step'}


def generations_of(numbers):
    return sum(v for key, v in numbers.items() if key[1] == 'lrun_rendezvous_generations_total')


def children_of(pid):
    """All descendants, nearest first."""
    parent = {}
    for file in Path('/proc').glob('[0-9]*/stat'):
        try:
            parent[int(file.parent.name)] = int(file.read_text().rsplit(')', 1)[1].split()[1])
        except (OSError, ValueError):
            continue  # it has just ended
    found = [pid]
    for known in found:  # grows while it is walked
        found += [child for child, of in parent.items() if of == known]
    return found[1:]


def worker_of(job, rank):
    """The pid of the job's worker with this global rank."""
    for pid in children_of(job.process.pid):
        try:
            environment = Path(f'/proc/{pid}/environ').read_bytes().split(b'\0')
            name = Path(f'/proc/{pid}/comm').read_text(encoding='utf-8').strip()
        except OSError:
            continue
        if f'RANK={rank}'.encode() in environment and name == 'lrun-train':
            return pid
    raise Failed(f'no worker of rank {rank} among the processes of the job')


def kill_one(job, total_steps):
    """(pid, step, seconds from the kill to the next completed step)."""
    step = job.follow(lambda n: reached(n, int(KILL_AT * total_steps)))
    if step is None:
        raise Failed(f'{job.name} ended before it could be disturbed; log: {job.log}')
    pid = worker_of(job, VICTIM_RANK)
    generations = generations_of(job.numbers())
    killed_at = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    before = {}

    def has_gone_on(numbers):
        if generations_of(numbers) <= generations:
            return None
        steps = steps_of(numbers)
        before.update({key: value for key, value in steps.items() if key not in before})
        moved = any(value > 0 and value != before[key] for key, value in steps.items())
        return time.monotonic() - killed_at if moved else None

    recovery = job.follow(has_gone_on)
    if recovery is None:
        raise Failed(f'{job.name} did not recover; log: {job.log}')
    return pid, step, recovery


def reached(numbers, step):
    newest = int(max(steps_of(numbers).values(), default=0))
    return newest if newest >= step else None


def report(calm, disturbed, outcome, kill):
    (accuracy, weights), (accuracy2, weights2) = outcome
    pid, step, recovery = kill
    here = FOLDER.relative_to(Path.cwd()) if Path.cwd() in FOLDER.parents else FOLDER
    print(f'''
                 undisturbed                 with a kill -9
  accuracy       {accuracy:.2%}                      {accuracy2:.2%}
  SHA-256        {weights}
                 {weights2}
                 {"the same weights, bit for bit" if weights == weights2 else "THEY DIFFER"}
  recovery       {recovery:.2f} s from the kill of rank {VICTIM_RANK} (pid {pid}, after step {step})
                 to the next completed step

  log            {here}/{disturbed.name}/lrun.log; of each worker below {disturbed.name}/workers
  metrics        {here}/{calm.name}/run/metrics.csv, and for TensorBoard beside it
  checkpoints    {here}/{calm.name}/run/checkpoints

Next:
  build/bin/lrun --nnodes 2 --nproc 2 env         type it in two terminals: one job of four workers
  build/bin/lrun --standalone --nproc 4 lrun-train fit --config trainer/examples/fashion_mnist.yaml
  build/bin/lrun --metrics-port 9400 --nproc 2 lrun-train …; curl -s 127.0.0.1:9400/metrics''')


def main():
    os.environ['PATH'] = f'{PROGRAMS}:{os.environ["PATH"]}'
    shutil.rmtree(FOLDER, ignore_errors=True)
    jobs = []
    try:
        calm = Job('undisturbed')
        jobs.append(calm)
        print('  ' + ' '.join(calm.words[:14]) + ' …', flush=True)
        first = calm.finish()
        disturbed = Job('disturbed')
        jobs.append(disturbed)
        kill = kill_one(disturbed, calm.last_step)
        second = disturbed.finish()
    except Failed as failure:
        print(f'scripts/quickstart: {failure}', file=sys.stderr)
        return 1
    finally:
        for job in jobs:
            job.stop()
    report(calm, disturbed, (first, second), kill)
    if first[1] != second[1]:
        print('scripts/quickstart: the weights differ', file=sys.stderr)
        return 1
    if min(first[0], second[0]) < ACCURACY_LEAST:
        print(f'scripts/quickstart: accuracy below {ACCURACY_LEAST:.0%}', file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
