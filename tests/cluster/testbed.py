"""The testbed as the cluster tests use it: hosts, Slurm, Prometheus and checkers of tests/testbed.

Owns state folders, clean-up and the reasons for skipping; knows nothing of what is tested.
"""

import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPTS = ROOT / 'tests/testbed'
BUILD = Path(os.environ.get('LRUN_BUILD_DIR', ROOT / 'build'))
LRUN = BUILD / 'bin/lrun'
TOOLS = BUILD / 'testbed'  # what PyPI gave; outlives a run
# Nothing of the caller's own jobs or options.
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(('LRUN_', 'PET_', 'SLURM_', 'TORCHELASTIC_'))
}
LIMIT_SECONDS = 60  # a busy machine is ten times slower than an idle one


def run(*words, limit=LIMIT_SECONDS, check=True, **environment):
    """Runs a command to its end; stdout and stderr are text."""
    done = subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=limit,
        env={**ENVIRONMENT, **environment},
    )
    if check and done.returncode != 0:
        raise AssertionError(f'{words} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}')
    return done


def wait_for(what, condition, limit=LIMIT_SECONDS):
    """The first true value of the condition; fails when the time is over."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError(f'not within {limit} s: {what}')


class Cluster(unittest.TestCase):
    """A test with a state folder of its own, in which everything ends with the test."""

    needs = ()  # programs

    def setUp(self):
        for program in self.needs:
            if not shutil.which(program):
                self.skipTest(
                    f'{program} is not installed: scripts/test cluster installs it as root'
                )
        # Short: Unix sockets lie below.
        self.state = Path(tempfile.mkdtemp(prefix='lrun-tb-'))
        self.addCleanup(shutil.rmtree, self.state, ignore_errors=True)

    def script(self, name, *words, **options):
        mine = {'TESTBED_STATE': str(self.state), 'TMPDIR': str(self.state)}
        return run(SCRIPTS / name, *words, **{**mine, **options})

    def need_root(self):
        if os.geteuid() != 0:
            self.skipTest('needs root')

    def start_hosts(self, count):
        """Hosts node1..nodeN of their own, or skips where the kernel forbids them."""
        self.need_root()
        probe = f'lrun-probe-{os.getpid()}'
        made = run('ip', 'netns', 'add', probe, check=False)
        if made.returncode != 0:
            self.skipTest(f'no network namespaces here: {made.stderr.strip()}')
        run('ip', 'netns', 'del', probe)
        self.prefix = f't{os.getpid() % 100000}n'
        self.addCleanup(self.script, 'netns-cluster.sh', 'down')
        self.script('netns-cluster.sh', 'up', count, NETNS_PREFIX=self.prefix)

    def start(self, *words, **environment):
        """A process whose output is collected; it ends with the test."""
        process = Started(words, {'TMPDIR': str(self.state), **environment})
        self.addCleanup(process.end)
        return process

    def on_host(self, host, *words, **environment):
        return self.start(
            SCRIPTS / 'netns-cluster.sh',
            'exec',
            host,
            *words,
            TESTBED_STATE=str(self.state),
            **environment,
        )


class Started:
    """A running process; a thread for each stream collects what it says."""

    def __init__(self, words, environment):
        self.process = subprocess.Popen(
            [str(word) for word in words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**ENVIRONMENT, **environment},
        )
        self.out, self.err = [], []
        self.readers = [
            threading.Thread(target=lines.extend, args=(stream,), daemon=True)
            for lines, stream in ((self.out, self.process.stdout), (self.err, self.process.stderr))
        ]
        for reader in self.readers:
            reader.start()

    def text(self):
        return ''.join([*self.out, *self.err])

    def wait(self):
        """The exit code, once all output is read."""
        code = self.process.wait(LIMIT_SECONDS)
        for reader in self.readers:
            reader.join(LIMIT_SECONDS)
        return code

    def wait_for_text(self, pattern, what):
        """The first match in its output; fails when the process ends or the time is over."""

        def look():
            found = re.search(pattern, self.text(), re.M)
            if not found and self.process.poll() is not None:
                self.wait()
                raise AssertionError(f'ended without: {what}\n{self.text()}')
            return found

        try:
            return wait_for(what, look)
        except AssertionError as failure:
            raise AssertionError(f'{failure}\n{self.text()}') from None

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(LIMIT_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.wait()
        self.process.stdout.close()
        self.process.stderr.close()
