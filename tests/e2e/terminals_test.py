"""Jobs that form by themselves: two terminals of one machine, endpoints, elastic ranges."""

import os
import re
import signal
import socket

from support import JobTest, main, wait_for

WORKER = (
    'echo "rank=$RANK world=$WORLD_SIZE generation=$LRUN_GENERATION run=$TORCHELASTIC_RUN_ID"\n'
)
# Says what it is, then works until it is told to stop.
LONG_WORKER = WORKER.replace("echo", "echo up") + "sleep 300 & wait\n"


def ranks(lines):
    return sorted(
        int(match.group(1)) for match in (re.match(r"rank=(\d+) ", line) for line in lines) if match
    )


class Terminals(JobTest):
    def test_one_node(self):
        code, one = self.run_lrun("--nproc=3", self.script("w", WORKER))
        self.assertEqual(code, 0, one.text())
        self.assertEqual(ranks(one.out), [0, 1, 2], one.text())

    # T10: two terminals and no endpoint: the first prints the line for other nodes, the second
    # finds it.
    def test_two_terminals_form_one_job(self):
        worker = self.script("w", WORKER)
        words = ("--nnodes=2", "--nproc=4", worker)
        first = self.lrun(*words)
        wait_for(lambda: self.status(), "the first serves", detail=first.text)
        second = self.lrun(*words)
        self.assertEqual(first.wait(), 0, first.text())
        self.assertEqual(second.wait(), 0, second.text())
        lines = first.out + second.out
        self.assertEqual(ranks(lines), list(range(8)), first.text() + second.text())
        self.assertEqual(len({re.search(r"generation=(\S+)", line).group(1) for line in lines}), 1)
        announced = [line for line in first.err if "--rdzv-endpoint=" in line]
        self.assertEqual(len(announced), 1, first.text())
        self.assertIn("--rdzv-id=", announced[0])
        self.assertIn(worker, announced[0])

    def test_the_printed_line_joins(self):
        worker = self.script("w", WORKER)
        first = self.lrun("--nnodes=2", "--nproc=2", worker)
        line = wait_for(
            lambda: next((text for text in first.err if "--rdzv-endpoint=" in text), None),
            "the line for other nodes",
            detail=first.text,
        )
        second = self.lrun(*line.split()[1:])
        self.assertEqual(second.wait(), 0, second.text())
        self.assertEqual(first.wait(), 0, first.text())
        self.assertEqual(ranks(first.out + second.out), [0, 1, 2, 3])

    def test_a_third_terminal_starts_a_new_job(self):
        words = ("--nnodes=2", "--nproc=1", self.script("w", LONG_WORKER))
        jobs = [self.lrun(*words) for _ in range(4)]
        for job in jobs:
            wait_for(lambda job=job: job.out, "a worker runs", detail=job.text)
        generations = sorted(re.search(r"generation=(\S+)", job.out[0]).group(1) for job in jobs)
        self.assertTrue(all("world=2" in job.out[0] for job in jobs), [job.out for job in jobs])
        serving = [job for job in jobs if any("--rdzv-endpoint=" in line for line in job.err)]
        self.assertEqual(len(serving), 2, generations)
        for job in jobs:
            job.signal(signal.SIGTERM)
        for job in jobs:
            self.assertEqual(job.wait(), 143, job.text())

    def test_unrelated_commands_never_meet(self):
        one = self.lrun("--nnodes=1:2", "--last-call=0.3", self.script("a", LONG_WORKER))
        other = self.lrun("--nnodes=1:2", "--last-call=0.3", self.script("b", LONG_WORKER))
        for job in (one, other):
            wait_for(lambda job=job: job.out, "it runs", detail=job.text)
            self.assertIn("world=1", job.out[0])
            job.signal(signal.SIGINT)
        self.assertEqual([one.wait(), other.wait()], [130, 130])

    # B012: two single-machine jobs at once.
    def test_standalone_jobs_never_collide(self):
        worker = self.script("w", WORKER)
        jobs = [self.lrun("--standalone", "--nproc=2", worker) for _ in range(8)]
        for job in jobs:
            self.assertEqual(job.wait(), 0, job.text())
            self.assertEqual(ranks(job.out), [0, 1])

    def test_standalone_nodes(self):
        code, one = self.run_lrun(
            "--standalone", "--nnodes=2", "--nproc=2", self.script("w", WORKER)
        )
        self.assertEqual(code, 0, one.text())
        self.assertEqual(ranks(one.out), [0, 1, 2, 3], one.text())

    # B009: the service comes after the agents.
    def test_agents_wait_for_the_service(self):
        port = free_port()
        words = ("--nnodes=2", f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=late")
        agents = [self.lrun("agent", *words, self.script("w", WORKER)) for _ in range(2)]
        wait_for(lambda: all(agent.process.poll() is None for agent in agents), "agents are up")
        service = self.lrun("rendezvous", *words, "--lease=1", "--heartbeat=0.3")
        for one in agents:
            self.assertEqual(one.wait(), 0, one.text())
        self.assertEqual(service.wait(), 0, service.text())
        self.assertEqual(ranks(agents[0].out + agents[1].out), [0, 1])

    # E14, B026: bounded, and the code differs from a worker's failure.
    def test_nobody_serves(self):
        code, one = self.run_lrun(
            "agent", f"--rdzv-endpoint=127.0.0.1:{free_port()}", "--join-timeout=1", "true"
        )
        self.assertEqual(code, 3, one.text())
        code, one = self.run_lrun("--nnodes=2", "--join-timeout=1", "true")
        self.assertEqual(code, 3, one.text())
        self.assertIn("1 of at least 2 nodes", one.text())

    # Done when: kill -9 of one whole lrun and its restart, down to one node and back to two. B029,
    # B032.
    def test_elastic_loses_a_node_and_gets_it_back(self):
        words = (
            "--nnodes=1:2",
            "--nproc=2",
            "--last-call=1",
            "--lease=2",
            "--heartbeat=0.3",
            self.script("w", LONG_WORKER),
        )
        first = self.lrun(*words)
        wait_for(lambda: self.status(), "the first serves", detail=first.text)
        second = self.lrun(*words)
        wait_for(
            lambda: self.world_of(first) == 4 and self.world_of(second) == 4,
            "four workers",
            detail=first.text,
        )
        os.kill(second.pid, signal.SIGKILL)
        wait_for(lambda: self.world_of(first) == 2, "down to one node", detail=first.text)
        third = self.lrun(*words)
        wait_for(
            lambda: self.world_of(first) == 4 and self.world_of(third) == 4,
            "back to two",
            detail=first.text,
        )
        self.assertIsNone(first.process.poll(), "the survivor kept its process")
        status = self.status()
        self.assertEqual(status["restarts_spent"], 0, "membership changes are free")
        for job in (third, first):
            job.signal(signal.SIGTERM)
            self.assertEqual(job.wait(), 143, job.text())

    @staticmethod
    def world_of(job):
        found = [re.search(r"world=(\d+)", line) for line in job.out if line.startswith("up")]
        return int(found[-1].group(1)) if found else 0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    main()
