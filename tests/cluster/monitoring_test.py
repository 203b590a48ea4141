#!/usr/bin/env python3
"""A real Prometheus scrapes a job that restarts once; every query of the dashboard returns data."""

import json
import os
import re
import unittest
import urllib.request

import testbed
from testbed import LRUN, ROOT, wait_for

# A live-looking worker in Python: speaks the channel, fails once in its first generation.
WORKER = '''
import json, os, socket, sys, time
agent = socket.socket(fileno=int(os.environ["LRUN_CHANNEL_FD"]))
def say(**message): agent.sendall(json.dumps(message).encode() + b"\\n")
say(type="hello", version=1, live=False)
for step in range(1, 100000):
    say(type="progress", step=step, samples=64 * step, activity="computing",
        samples_per_second=640.0)
    time.sleep(0.1)
    if step == 20 and os.environ["RANK"] == "1" and os.environ["LRUN_RESTART_COUNT"] == "0":
        sys.exit(9)
'''


class Monitoring(testbed.Cluster):
    needs = ('prometheus', 'promtool', 'curl', 'jq')

    def start_job(self):
        """Two agents and their rendezvous, with a metrics port each; returns the ports."""
        job = self.start(
            LRUN,
            '--standalone',
            '--nnodes',
            '2',
            '--nproc',
            '2',
            '--max-restarts',
            '3',
            '--metrics-port',
            '0',
            '--log-dir',
            self.state / 'logs',
            '--redirects',
            '3',
            'python3',
            '-c',
            WORKER,
            XDG_RUNTIME_DIR=str(self.state),
        )
        port = re.compile(r'http://127\.0\.0\.1:(\d+)/metrics')
        wait_for('three metrics ports are printed', lambda: len(port.findall(job.text())) == 3)
        return port.findall(job.text())

    def query(self, expression):
        return self.script(
            'monitoring.sh', 'query', expression, check=False, PROMETHEUS_PORT=self.port
        ).stdout

    def value(self, expression):
        found = re.search(r' ([\d.e+-]+)$', self.query(expression).strip())
        return float(found.group(1)) if found else None

    def test_dashboard_has_data(self):
        self.port = str(20000 + os.getpid() % 20000)
        ports = self.start_job()
        self.addCleanup(self.script, 'monitoring.sh', 'down')
        self.script(
            'monitoring.sh',
            'up',
            ROOT / 'monitoring/prometheus.yml',
            *(f'127.0.0.1:{port}' for port in ports),
            PROMETHEUS_PORT=self.port,
        )
        wait_for('all are scraped', lambda: self.value('sum(up)') == 3)
        wait_for(
            'the restart is counted',
            lambda: self.value('sum(lrun_agent_restarts_total{cause="exit"})') == 1,
        )
        wait_for(
            'the group is whole again', lambda: self.value('max(lrun_rendezvous_world_size)') == 4
        )
        self.assertEqual(self.value('max(lrun_rendezvous_restart_budget_left)'), 2)
        self.assertEqual(
            self.value('sum(lrun_rendezvous_generations_total{reason="worker_failed"})'), 1
        )
        wait_for('steps are seen', lambda: (self.value('max(lrun_worker_step)') or 0) > 0)
        self.lint(ports)
        self.check_dashboard()

    def lint(self, ports):
        for port in ports:
            self.script('monitoring.sh', 'lint', f'http://127.0.0.1:{port}/metrics')
            for path in ('healthz', 'readyz'):
                with urllib.request.urlopen(
                    f'http://127.0.0.1:{port}/{path}', timeout=10
                ) as answer:
                    self.assertEqual(answer.status, 200)

    def check_dashboard(self):
        def check(file):
            return self.script(
                'monitoring.sh', 'check-dashboard', file, check=False, PROMETHEUS_PORT=self.port
            )

        file = ROOT / 'monitoring/job.json'
        # A rate needs two scrapes, five seconds apart.
        done = wait_for(
            'every query returns data',
            lambda: (lambda d: d if d.returncode == 0 else None)(check(file)),
        )
        self.assertIn('ok     Phase', done.stdout)
        mutant = self.state / 'mutant.json'
        board = file.read_text(encoding='utf-8').replace('lrun_worker_step', 'lrun_worker_steps')
        mutant.write_text(json.dumps(json.loads(board)), encoding='utf-8')
        self.assertEqual(check(mutant).returncode, 1, 'a renamed metric must be noticed')


if __name__ == '__main__':
    unittest.main()
