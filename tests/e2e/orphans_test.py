"""kill -9 of an agent leaves no process: 20 of 20, daemonised grandchildren included. B057."""

import os
import signal
import unittest

from support import JobTest, main, processes_with, wait_for

# A worker with a plain child, one in a session of its own, and one that daemonises by a double
# fork.
WORKER = """sleep 300 &
setsid sleep 300 &
setsid sh -c 'setsid sleep 300 & exit 0'
echo up
wait
"""
TRIES = 20


class Orphans(JobTest):
    def test_nothing_survives_a_killed_agent(self):
        worker = self.script("w", WORKER)
        for attempt in range(TRIES):
            one = self.lrun("--nproc=2", worker)
            wait_for(lambda one=one: one.out.count("up") == 2, "workers run", detail=one.text)
            before = processes_with("LRUN_TEST_MARKER", self.marker)
            self.assertGreaterEqual(len(before), 8, "workers and their children")
            os.kill(one.pid, signal.SIGKILL)
            wait_for(
                lambda: not processes_with("LRUN_TEST_MARKER", self.marker),
                f"try {attempt}: nothing left",
                limit=10,
                detail=lambda: str(processes_with("LRUN_TEST_MARKER", self.marker)),
            )
            one.wait()

    def test_nothing_survives_a_killed_standalone_job(self):
        one = self.lrun("--standalone", "--nnodes=2", "--nproc=1", self.script("w", WORKER))
        wait_for(lambda: one.out.count("up") == 2, "workers run", detail=one.text)
        os.kill(one.pid, signal.SIGKILL)
        wait_for(
            lambda: not processes_with("LRUN_TEST_MARKER", self.marker), "nothing left", limit=10
        )
        one.wait()

    def test_nothing_survives_a_normal_end(self):
        code, one = self.run_lrun(
            "--nproc=2", self.script("w", WORKER.replace("wait\n", "exit 0\n"))
        )
        self.assertEqual(code, 0, one.text())
        self.assertEqual(processes_with("LRUN_TEST_MARKER", self.marker), [])


if __name__ == "__main__":
    unittest.installHandler()
    main()
