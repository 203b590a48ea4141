"""The testbed as the cluster tests use it: hosts, Slurm, Prometheus and checkers of tests/testbed.

Owns state folders, clean-up and the reasons for skipping; knows nothing of what is tested.
"""

import os
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPTS = ROOT / 'tests/testbed'
BUILD = Path(os.environ.get('LRUN_BUILD_DIR', ROOT / 'build'))
LRUN = BUILD / 'bin/lrun'
TOOLS = BUILD / 'testbed'  # what PyPI gave; outlives a run
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
        env={**os.environ, **environment},
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
        return run(SCRIPTS / name, *words, TESTBED_STATE=str(self.state), **options)

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

    def on_host(self, host, *words, **environment):
        """Starts a command on a host; it is ended with the test."""
        process = subprocess.Popen(
            [str(SCRIPTS / 'netns-cluster.sh'), 'exec', host, *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, 'TESTBED_STATE': str(self.state), **environment},
        )
        self.addCleanup(end, process)
        return process


def end(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()
