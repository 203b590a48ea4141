#!/usr/bin/env python3
"""lrun in a real Slurm, on hosts with names and addresses of their own."""

import re
import unittest

import testbed
from testbed import LRUN

SHOW = (
    'echo "rank=$RANK world=$WORLD_SIZE local=$LOCAL_RANK node=$GROUP_RANK host=$(hostname)'
    ' run=$LRUN_RUN_ID generation=$LRUN_GENERATION"'
)
LINE = re.compile(
    r'rank=(\d+) world=(\d+) local=(\d+) node=(\d+) host=(\S+) run=(\S+) generation=(\S+)'
)


class Slurm(testbed.Cluster):
    needs = ('ip', 'nft', 'slurmctld', 'slurmd', 'munged', 'srun')

    def setUp(self):
        super().setUp()
        self.start_hosts(2)
        self.addCleanup(self.script, 'slurm-cluster.sh', 'down')
        self.script('slurm-cluster.sh', 'up', 2, SLURM_ON_NETNS='1')
        (self.state / 'home').mkdir()

    def srun(self, *words, check=True):
        return self.script(
            'slurm-cluster.sh', 'exec', 'srun', *words, check=check, HOME=str(self.state / 'home')
        )

    def test_one_group_without_options(self):
        done = self.srun('-N2', '--ntasks-per-node=1', LRUN, '--nproc', '2', 'sh', '-c', SHOW)
        rows = [match.groups() for match in map(LINE.search, done.stdout.splitlines()) if match]
        text = done.stdout + done.stderr
        self.assertEqual(sorted(row[0] for row in rows), ['0', '1', '2', '3'], text)
        self.assertEqual({row[1] for row in rows}, {'4'}, text)
        self.assertEqual(len({row[6] for row in rows}), 1, 'one generation: ' + text)
        self.assertRegex(rows[0][5], r'^\d+\.0$')
        # The node rank is Slurm's: node1 has the global ranks 0 and 1.
        self.assertEqual({(row[3], row[4]) for row in rows}, {('0', 'node1'), ('1', 'node2')}, text)
        self.assertEqual({row[0] for row in rows if row[4] == 'node1'}, {'0', '1'}, text)

    def test_two_tasks_on_a_node_are_refused(self):
        done = self.srun('-N1', '--ntasks-per-node=2', LRUN, '--nproc', '2', 'true', check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn('--ntasks-per-node=1', done.stderr)

    def test_exit_code_reaches_srun(self):
        done = self.srun(
            '-N2', '--ntasks-per-node=1', LRUN, '--nproc', '1', 'sh', '-c', 'exit 7', check=False
        )
        self.assertEqual(done.returncode, 1, done.stderr)


if __name__ == '__main__':
    unittest.main()
