"""Workers that fail: restarts, budgets, reports, exit codes, signals."""

import os
import re
import signal
import time

from support import JobTest, main, processes_with, wait_for


class Failures(JobTest):
    # B060: never 0, the code in the report.
    def test_exit_codes_are_reported(self):
        for code in (1, 7, 126, 127, 255):
            worker = self.script("w", f'if [ $RANK = 1 ]; then exit {code}; fi\nsleep 60 & wait\n')
            got, one = self.run_lrun("--nproc=2", "--shutdown-timeout=5", worker)
            self.assertEqual(got, 1, one.text())
            self.assertRegex(one.text(), rf"exitcode\s*:\s*{code} ")

    def test_a_restart_begins_with_the_next_attempt(self):
        worker = self.script(
            "w",
            'echo "attempt=$TORCHELASTIC_RESTART_COUNT rank=$RANK"\n'
            'if [ $TORCHELASTIC_RESTART_COUNT = 0 ] && [ $RANK = 1 ]; then exit 3; fi\n',
        )
        code, one = self.run_lrun("--nproc=2", "--max-restarts=1", worker)
        self.assertEqual(code, 0, one.text())
        self.assertEqual(
            sorted(line for line in one.out if "attempt=1" in line),
            ["attempt=1 rank=0", "attempt=1 rank=1"],
        )

    # F2: at most N + 1 attempts.
    def test_the_budget_ends(self):
        worker = self.script("w", 'echo "attempt=$TORCHELASTIC_RESTART_COUNT"\nexit 5\n')
        code, one = self.run_lrun("--max-restarts=2", worker)
        self.assertEqual(code, 1, one.text())
        self.assertEqual(one.out, ["attempt=0", "attempt=1", "attempt=2"])

    # F4, X20: one budget and one count for the job.
    def test_both_nodes_restart_together(self):
        worker = self.script(
            "w",
            'echo "attempt=$TORCHELASTIC_RESTART_COUNT rank=$RANK"\n'
            '[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0\n'
            '[ $RANK = 3 ] && exit 9\nsleep 60 & wait\n',
        )
        code, one = self.run_lrun(
            "--standalone",
            "--nnodes=2",
            "--nproc=2",
            "--max-restarts=1",
            "--shutdown-timeout=5",
            worker,
        )
        self.assertEqual(code, 0, one.text())
        self.assertEqual(len([line for line in one.out if "attempt=1" in line]), 4, one.text())

    # B062: the first to fail is named, not those that were stopped.
    def test_the_first_cause_is_named(self):
        worker = self.script(
            "w",
            'if [ $RANK = 3 ]; then sleep 0.3; exit 42; fi\n'
            'trap "exit 143" TERM\nsleep 60 & wait\n',
        )
        code, one = self.run_lrun(
            "--standalone", "--nnodes=2", "--nproc=2", "--shutdown-timeout=5", worker
        )
        self.assertEqual(code, 1, one.text())
        self.assertRegex(one.text(), r"exitcode\s*:\s*42 ")
        sentences = [line for line in one.err if "42" in line]
        self.assertTrue(any("worker 3 " in line for line in sentences), one.text())

    # B051: a worker that is killed alone is a failure, with the signal's name.
    def test_a_killed_worker_restarts_the_group(self):
        worker = self.script(
            "w",
            'echo "up $TORCHELASTIC_RESTART_COUNT $RANK $$"\n'
            '[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0\nsleep 60 & wait\n',
        )
        one = self.lrun("--nproc=2", "--max-restarts=1", "--shutdown-timeout=5", worker)
        lines = wait_for(lambda: len(one.out) == 2 and list(one.out), "both run", detail=one.text)
        os.kill(int(lines[0].split()[3]), signal.SIGKILL)
        self.assertEqual(one.wait(), 0, one.text())

    def test_signals_reach_the_workers(self):
        worker = self.script(
            "w",
            'trap "echo got-term; exit 0" TERM\ntrap "echo got-int; exit 0" INT\n'
            'echo up\nsleep 60 & wait\n',
        )
        for number, code, said in (
            (signal.SIGTERM, 143, "got-term"),
            (signal.SIGINT, 130, "got-int"),
        ):
            one = self.lrun("--nproc=2", worker)
            wait_for(lambda one=one: one.out.count("up") == 2, "both run", detail=one.text)
            one.signal(number)
            self.assertEqual(one.wait(), code, one.text())
            self.assertEqual(one.out.count(said), 2, one.text())

    # B044, G5: grace, then KILL; a second signal hastens.
    def test_a_worker_that_ignores_term_is_killed(self):
        worker = self.script("w", 'trap "" TERM\necho up\nwhile true; do sleep 1; done\n')
        one = self.lrun("--shutdown-timeout=1", worker)
        wait_for(lambda: one.out, "it runs", detail=one.text)
        began = time.monotonic()
        one.signal(signal.SIGTERM)
        self.assertEqual(one.wait(), 143, one.text())
        self.assertGreater(time.monotonic() - began, 0.9)
        two = self.lrun("--shutdown-timeout=600", worker)
        wait_for(lambda: two.out, "it runs", detail=two.text)
        two.signal(signal.SIGTERM)
        time.sleep(0.3)
        two.signal(signal.SIGTERM)
        self.assertEqual(two.wait(), 143, two.text())

    # B045: USR1 and USR2 as a scheduler's warning do not end the launcher.
    def test_warning_signals_do_no_harm(self):
        one = self.lrun(self.script("w", "echo up\nsleep 60 & wait\n"))
        wait_for(lambda: one.out, "it runs", detail=one.text)
        one.signal(signal.SIGUSR1)
        one.signal(signal.SIGUSR2)
        time.sleep(0.3)
        self.assertIsNone(one.process.poll(), one.text())
        one.signal(signal.SIGTERM)
        self.assertEqual(one.wait(), 143)

    # "kill anything": an agent of a standalone job that is killed comes back.
    def test_a_killed_agent_comes_back(self):
        worker = self.script(
            "w", 'echo "up $WORLD_SIZE $GROUP_RANK $LRUN_GENERATION"\nsleep 300 & wait\n'
        )
        one = self.lrun(
            "--standalone", "--nnodes=2", "--nproc=1", "--lease=2", "--heartbeat=0.3", worker
        )
        wait_for(lambda: len(one.out) == 2, "both run", detail=one.text)
        agents = [
            pid for pid in processes_with("LRUN_TEST_MARKER", self.marker) if is_agent(pid, one.pid)
        ]
        self.assertEqual(len(agents), 2, one.text())
        os.kill(agents[0], signal.SIGKILL)
        wait_for(lambda: len(one.out) == 4, "both run again", detail=one.text)
        self.assertEqual(
            len({re.search(r"(\S+)$", line).group(1) for line in one.out}), 2, one.text()
        )
        one.signal(signal.SIGTERM)
        self.assertEqual(one.wait(), 143, one.text())

    # B023: every participant dies in the same moment.
    def test_all_agents_killed_at_once_come_back(self):
        worker = self.script("w", 'echo "up $RANK"\nsleep 300 & wait\n')
        one = self.lrun("--standalone", "--nnodes=2", "--lease=2", "--heartbeat=0.3", worker)
        wait_for(lambda: len(one.out) == 2, "both run", detail=one.text)
        marked = processes_with("LRUN_TEST_MARKER", self.marker)
        for pid in [pid for pid in marked if is_agent(pid, one.pid)]:
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: len(one.out) == 4, "both run again", detail=one.text)
        one.signal(signal.SIGTERM)
        self.assertEqual(one.wait(), 143, one.text())


def is_agent(pid, parent):
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rsplit(b")", 1)[1].split()[1]) == parent
    except OSError:
        return False


if __name__ == "__main__":
    main()
