"""The promise, on real images: one final hash, whatever the number of workers and whoever dies."""

import os
import random
import re
import signal
import time

from support import TRAIN, JobTest, Launched, main, wait_for

CONFIG = os.path.join(
    os.path.dirname(__file__), "..", "..", "trainer", "examples", "fashion_mnist.yaml"
)
STEPS = 300
KILLS = 3
LIMIT = 180


def hash_of(lines):
    found = [
        match.group(1)
        for match in (re.search(r"weights sha256: ([0-9a-f]{64})", line) for line in lines)
        if match
    ]
    return found[-1] if found else None


class Training(JobTest):
    def words(self, name, *overrides):
        return (
            TRAIN,
            "fit",
            "--config",
            CONFIG,
            f"trainer.default_root_dir={self.folder}/{name}",
            f"trainer.max_steps={STEPS}",
            "checkpoint.every_n_train_steps=20",
            *overrides,
        )

    def alone(self):
        one = Launched(list(self.words("alone")), self.environment, self.folder)
        self.launched.append(one)
        self.assertEqual(one.wait(LIMIT), 0, one.text())
        return hash_of(one.out)

    def test_same_weights_for_every_world_and_every_death(self):
        expected = self.alone()
        self.assertTrue(expected)
        for workers, strategy in ((2, "ddp"), (3, "zero1"), (4, "ddp")):
            with self.subTest(workers=workers, strategy=strategy):
                name = f"w{workers}"
                code, one = self.run_lrun(
                    f"--nproc={workers}", *self.words(name, f"strategy={strategy}"), limit=LIMIT
                )
                self.assertEqual(code, 0, one.text())
                self.assertEqual(hash_of(one.out), expected, one.text())
        with self.subTest("killed"):
            one = self.lrun(
                "--standalone",
                "--nnodes=2",
                "--nproc=2",
                f"--max-restarts={KILLS + 2}",
                *self.words("killed", "strategy=zero1"),
            )
            kills = self.kill_workers(one)
            self.assertEqual(one.wait(LIMIT), 0, one.text())
            self.assertGreaterEqual(kills, 1, "the job ended before anybody was killed")
            self.assertEqual(hash_of(one.out), expected, one.text())
            charged = [line for line in one.err if "event=restart_charged" in line]
            self.assertEqual(len(charged), kills, one.text())

    def kill_workers(self, job):
        """kill -9 of a random worker at random moments, each time once it trains again."""
        choice = random.Random(7)
        kills = 0
        for generation in range(1, KILLS + 1):
            start = re.compile(r"step \d+|resumed at step")
            try:
                wait_for(
                    lambda: job.process.poll() is not None
                    or sum(line.startswith("training with") for line in job.out) >= generation,
                    "it trains",
                    detail=job.text,
                )
                wait_for(
                    lambda: job.process.poll() is not None
                    or any(start.search(line) for line in job.out[-3:]),
                    "steps go by",
                    detail=job.text,
                )
            except AssertionError:
                if job.process.poll() is None:
                    raise
            time.sleep(choice.uniform(0.1, 0.6))
            workers = self.workers()
            if job.process.poll() is not None or not workers:
                break
            os.kill(choice.choice(workers), signal.SIGKILL)
            kills += 1
        return kills

    def workers(self):
        """Pids of this test's lrun-train processes."""
        found = []
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    mine = f"LRUN_TEST_MARKER={self.marker}".encode() in file.read().split(b"\0")
                if mine and os.readlink(f"/proc/{entry}/exe") == os.path.realpath(TRAIN):
                    found.append(int(entry))
            except OSError:
                continue
        return sorted(found)

    # A worker's last checkpoint is complete, or there is an earlier one: the run goes on from it by
    # itself.
    def test_stops_in_order_and_goes_on(self):
        one = self.lrun("--nproc=2", *self.words("stopped", "trainer.max_steps=100000"))
        wait_for(lambda: any("step" in line for line in one.out), "steps go by", detail=one.text)
        time.sleep(1)
        one.signal(signal.SIGTERM)
        self.assertEqual(one.wait(LIMIT), 143, one.text())
        saved = os.listdir(os.path.join(self.folder, "stopped", "checkpoints"))
        self.assertTrue([name for name in saved if "partial" not in name], one.text())

    def test_bad_data_is_refused_before_anything_starts(self):
        one = Launched(
            list(self.words("bad", f"data.path={self.folder}/nowhere")),
            self.environment,
            self.folder,
        )
        self.launched.append(one)
        self.assertEqual(one.wait(LIMIT), 2, one.text())
        self.assertEqual(len(one.err), 1, one.text())
        self.assertIn("nowhere", one.err[0])


if __name__ == "__main__":
    main()
