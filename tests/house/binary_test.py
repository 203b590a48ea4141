#!/usr/bin/env python3
"""The programs in build/bin: what they link, and that `lrun --help` and docs/lrun.md list the same.

The build folder is LRUN_BUILD_DIR, else build/.
"""

import os
import re
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = Path(os.environ.get('LRUN_BUILD_DIR', ROOT / 'build'), 'bin')
LIMIT_SECONDS = 20


def output(*command):
    return subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT_SECONDS,
    ).stdout


def libraries(program):
    return re.findall(r'^\s*(\S+?\.so\S*)', output('ldd', PROGRAMS / program), re.M)


def options_of(text):
    """--names with the short forms dropped."""
    return set(re.findall(r'(?<![\w-])--[a-z][a-z0-9-]*', text))


class Linking(unittest.TestCase):
    """gRPC and LibTorch never meet in one process, and lrun starts in milliseconds."""

    def assert_none(self, program, pattern):
        linked = libraries(program)
        self.assertTrue(linked, f'{program} shows no library at all')
        self.assertEqual([name for name in linked if re.search(pattern, name)], [], program)

    def test_orchestrator(self):
        for program in ('lrun', 'lrun-sim'):
            self.assert_none(program, r'torch|c10|cuda|cupti|grpc|protobuf|absl')

    def test_trainer(self):
        self.assert_none('lrun-train', r'grpc|protobuf|absl')
        self.assertTrue([name for name in libraries('lrun-train') if 'torch' in name])


class Options(unittest.TestCase):
    """Each option is in the help and in docs/lrun.md."""

    def test_help_and_page(self):
        text = output(PROGRAMS / 'lrun', '--help')
        in_help = options_of('\n'.join(re.findall(r'^  (-.*)', text, re.M)))
        page = (ROOT / 'docs/lrun.md').read_text(encoding='utf-8')
        rows = options_of('\n'.join(re.findall(r'^\| `(-.*?)` \|', page, re.M)))
        self.assertGreater(len(in_help), 10)
        self.assertEqual(sorted(in_help - rows), [], 'in the help, in no table of docs/lrun.md')
        self.assertEqual(sorted(rows - in_help), [], 'in docs/lrun.md, not in the help')


if __name__ == '__main__':
    unittest.main()
