"""Starts real lrun processes in a world of their own, and leaves nothing behind.

Every test gets a temporary folder that is also home, runtime and log folder, so that it neither
sees nor disturbs other jobs of the user. Processes get sessions of their own and end by pid.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

BIN = os.environ.get(
    "LRUN_BIN", os.path.join(os.path.dirname(__file__), "..", "..", "build", "bin")
)
LRUN = os.path.join(BIN, "lrun")
TRAIN = os.path.join(BIN, "lrun-train")
LIMIT = (
    60  # seconds until something that should have happened counts as missing; machines are shared
)


class Launched:
    """One lrun process, its output collected line by line."""

    def __init__(self, words, environment, folder, stdin=subprocess.DEVNULL):
        self.words = words
        self.process = subprocess.Popen(
            words,
            env=environment,
            cwd=folder,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.out, self.err = [], []
        self._threads = [
            threading.Thread(target=self._read, args=pair, daemon=True)
            for pair in ((self.process.stdout, self.out), (self.process.stderr, self.err))
        ]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _read(stream, lines):
        for line in stream:
            lines.append(line.decode("utf-8", "replace").rstrip("\n"))

    @property
    def pid(self):
        return self.process.pid

    def wait(self, limit=LIMIT):
        try:
            code = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"{' '.join(self.words)} did not end within {limit} s\n{self.text()}"
            ) from None
        self.close()
        return code

    def close(self):
        """Of an ended process: reads what is left, closes the pipes."""
        for thread in self._threads:
            thread.join(5)
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()

    def signal(self, number):
        if self.process.poll() is None:
            os.kill(self.process.pid, number)

    def text(self):
        return "--- stdout\n" + "\n".join(self.out) + "\n--- stderr\n" + "\n".join(self.err)


def wait_for(condition, what, limit=LIMIT, detail=lambda: ""):
    """Until condition() is true; its value. Polls, since the other side is another process."""
    end = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {limit} s: {what}\n{detail()}")
        time.sleep(0.02)


def processes_with(variable, value):
    """Pids whose environment has variable=value: a job's workers and their descendants."""
    wanted = f"{variable}={value}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                if wanted not in file.read().split(b"\0"):
                    continue
            with open(f"/proc/{entry}/stat", "rb") as file:
                if file.read().rsplit(b")", 1)[1].split()[0] == b"Z":
                    continue
        except OSError:
            continue
        found.append(int(entry))
    return found


class JobTest(unittest.TestCase):
    """A test with a folder, a marker in the environment of all it starts, and a clean end."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lrun-e2e-")
        self.marker = os.path.basename(self.folder)
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("LRUN_", "PET_", "SLURM_", "TORCHELASTIC_"))
        }
        self.environment.update(
            HOME=self.folder,
            XDG_RUNTIME_DIR=self.folder,
            XDG_CONFIG_HOME=self.folder,
            TMPDIR=self.folder,
            LRUN_TEST_MARKER=self.marker,
        )
        self.launched = []

    def tearDown(self):
        for one in self.launched:
            if one.process.poll() is None:
                one.process.kill()
                one.process.wait()
            one.close()
        left = processes_with("LRUN_TEST_MARKER", self.marker)
        deadline = time.monotonic() + 5
        while left and time.monotonic() < deadline:
            time.sleep(0.05)
            left = processes_with("LRUN_TEST_MARKER", self.marker)
        names = {pid: _command_of(pid) for pid in left}
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        shutil.rmtree(self.folder, ignore_errors=True)
        self.assertFalse(names, "processes were left behind")

    def lrun(self, *words, environment=None):
        one = Launched(
            [LRUN, *map(str, words)], {**self.environment, **(environment or {})}, self.folder
        )
        self.launched.append(one)
        return one

    def run_lrun(self, *words, environment=None, limit=LIMIT):
        one = self.lrun(*words, environment=environment)
        return one.wait(limit), one

    def script(self, name, text):
        """A shell program of the test's folder."""
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)
        return path

    def status(self, *words):
        """What `lrun status --json` says, or None while no service answers."""
        done = subprocess.run(
            [LRUN, "status", "--json", *words],
            env=self.environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=LIMIT,
            check=False,
        )
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            return None
        return None if "error" in answer else answer

    def read(self, name):
        try:
            with open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return ""


def _command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return "?"


def main():
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
