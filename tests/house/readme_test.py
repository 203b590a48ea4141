#!/usr/bin/env python3
"""Runs every command block of README.md, as it stands there.

A block is ```bash …```; `terminals=N` behind the language means: the same block in N terminals at
once. Scripts run in the tree itself, the rest in a folder of its own that looks like it.
scripts/test is this test's own caller: of that it is seen that it can say what it does.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get('LRUN_BUILD_DIR', ROOT / 'build'))
README = (ROOT / 'README.md').read_text(encoding='utf-8')
BLOCK = re.compile(r'^```bash(?: terminals=(\d+))?\n(.*?)^```$', re.M | re.S)
CALLER = 'scripts/test'
LIMIT_SECONDS = 600


def end_session(process):
    """What the shell started is in its session."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


class Readme(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix='lrun-readme-'))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.kept = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(('LRUN_', 'PET_', 'SLURM_')) or k == 'LRUN_TORCH_ROOT'
        }
        self.environment = {
            **self.kept,
            'HOME': str(self.folder),
            'XDG_RUNTIME_DIR': str(self.folder),
            'TMPDIR': str(self.folder),
        }
        # The tree as a reader has it after the two commands, with what commands write kept apart.
        for entry in ('trainer', 'scripts', 'README.md'):
            (self.folder / entry).symlink_to(ROOT / entry)
        (self.folder / 'build').symlink_to(BUILD)

    def start(self, line):
        is_script = line.startswith('scripts/')
        process = subprocess.Popen(
            ['bash', '-euc', line],
            cwd=ROOT if is_script else self.folder,
            env=self.kept if is_script else self.environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.addCleanup(end_session, process)
        return process

    def run_block(self, text, terminals):
        """The output of a block; a line that fails fails the test."""
        if text == CALLER:
            text = f'{CALLER} --help'
        processes = [self.start(text) for _ in range(terminals)]
        out = [process.communicate(timeout=LIMIT_SECONDS) for process in processes]
        said = '\n'.join(part for pair in out for part in pair)
        self.assertEqual([p.returncode for p in processes], [0] * terminals, f'{text}\n{said}')
        return said

    def test_every_block(self):
        blocks = [(int(count or 1), text.strip()) for count, text in BLOCK.findall(README)]
        self.assertGreaterEqual(len(blocks), 5)
        for terminals, text in blocks:
            with self.subTest(command=text):
                said = self.run_block(text, terminals)
                if text == 'scripts/quickstart':
                    self.assertIn('the same weights, bit for bit', said)
                if terminals > 1:
                    ranks = sorted(re.findall(r'I am (\d) of 4', said))
                    self.assertEqual(ranks, ['0', '1', '2', '3'], said)

    def test_no_command_escapes(self):
        """A command in another kind of block would not be run: there is none."""
        other = re.sub(BLOCK, '', README)
        self.assertEqual(re.findall(r'^```.*', other, re.M), [])
        self.assertEqual(re.findall(r'^ *(?:build/bin|scripts)/.*', other, re.M), [])


if __name__ == '__main__':
    unittest.main()
