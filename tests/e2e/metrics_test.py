"""What the metrics port, the probes and `lrun status` say while a job runs; they agree."""

import os
import re
import signal
import urllib.error
import urllib.request

from support import TRAIN, JobTest, main, wait_for


def scrape(url):
    """Series of an exposition as {name{labels}: value}; fails on a line that is none."""
    with urllib.request.urlopen(url, timeout=10) as reply:
        text = reply.read().decode()
        assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4"), reply.headers
    series = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = re.fullmatch(r"([a-z_:0-9]+(?:\{.*\})?) (\S+)", line)
            assert match, line
            assert match.group(1) not in series, f"twice: {line}"
            series[match.group(1)] = float(match.group(2))
    return series


def code_of(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code


class Metrics(JobTest):
    def url_of(self, job, which):
        pattern = rf"metrics of {which}.* at (http\S+)/metrics"
        found = wait_for(
            lambda: next(
                (re.search(pattern, line) for line in job.err if re.search(pattern, line)), None
            ),
            f"metrics of {which}",
            detail=job.text,
        )
        return found.group(1)

    def test_a_node_alone(self):
        job = self.lrun(
            "--nproc=2", "--metrics-port=0", self.script("w", "echo up\nsleep 300 & wait\n")
        )
        wait_for(lambda: job.out.count("up") == 2, "it runs", detail=job.text)
        url = self.url_of(job, "node")
        self.assertEqual(code_of(url + "/healthz"), 200)
        self.assertEqual(code_of(url + "/readyz"), 200)
        self.assertEqual(code_of(url + "/nothing"), 404)
        status = wait_for(lambda: self.status(), "status answers", detail=job.text)
        series = scrape(url + "/metrics")
        self.assertEqual(series["lrun_rendezvous_world_size"], status["world_size"])
        self.assertEqual(series['lrun_rendezvous_nodes{role="participant"}'], len(status["nodes"]))
        self.assertEqual(series['lrun_rendezvous_phase{phase="active"}'], 1)
        self.assertEqual(series['lrun_agent_state{state="running"}'], 1)
        self.assertEqual(series["lrun_agent_slots"], 2)
        states = [value for name, value in series.items() if name.startswith("lrun_agent_state{")]
        self.assertEqual(sum(states), 1, "one state at a time (B130)")
        # B133: counters are there before the first event.
        self.assertEqual(series['lrun_agent_restarts_total{cause="signal"}'], 0)
        job.signal(signal.SIGTERM)
        self.assertEqual(job.wait(), 143)

    # Done when: the metrics while it trains; `lrun status` agrees with them.
    def test_a_training_job(self):
        config = os.path.join(
            os.path.dirname(__file__), "../../trainer/examples/fashion_mnist.yaml"
        )
        job = self.lrun(
            "--nproc=2",
            "--metrics-port=0",
            TRAIN,
            "fit",
            "--config",
            os.path.abspath(config),
            f"trainer.default_root_dir={self.folder}/run",
            "trainer.max_steps=100000",
        )
        url = self.url_of(job, "node")
        step = 'lrun_worker_step{local_rank="0"}'
        wait_for(lambda: scrape(url + "/metrics").get(step, 0) > 20, "steps", detail=job.text)
        before = scrape(url + "/metrics")
        status = self.status()
        # A heartbeat carries the step to the service at most once a second.
        reported = wait_for(
            lambda: (self.status() or status)["nodes"][0]["step"] >= before[step] and self.status(),
            "the service hears of the step",
            detail=job.text,
        )
        after = scrape(url + "/metrics")
        self.assertLessEqual(reported["nodes"][0]["step"], after[step])
        self.assertLessEqual(before[step], after[step])
        self.assertGreater(after["lrun_worker_samples_per_second"], 0)
        self.assertEqual(after["lrun_rendezvous_world_size"], reported["world_size"])
        spent = [
            value for name, value in after.items() if name.startswith("lrun_time_seconds_total")
        ]
        self.assertGreater(sum(spent), 0)
        job.signal(signal.SIGTERM)
        self.assertEqual(job.wait(), 143, job.text())

    def test_each_agent_of_one_machine_has_its_own(self):
        job = self.lrun(
            "--standalone",
            "--nnodes=2",
            "--metrics-port=0",
            self.script("w", "echo up\nsleep 300 & wait\n"),
        )
        wait_for(lambda: job.out.count("up") == 2, "it runs", detail=job.text)
        urls = wait_for(
            lambda: (lambda found: found if len(found) == 3 else None)(
                {
                    match.group(1)
                    for match in (re.search(r"at (http\S+)/metrics", line) for line in job.err)
                    if match
                }
            ),
            "three ports",
            detail=job.text,
        )
        nodes = [scrape(url + "/metrics") for url in urls]
        self.assertEqual(sum("lrun_agent_slots" in series for series in nodes), 2)
        self.assertEqual(sum(series.get("lrun_rendezvous_leader", 0) for series in nodes), 1)
        job.signal(signal.SIGTERM)
        self.assertEqual(job.wait(), 143)


if __name__ == "__main__":
    main()
