#!/usr/bin/env python3
"""clang-format agrees with the tree. Skipped where clang-format 14, Debian 12's, is not installed:
another version breaks lines elsewhere."""

import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

from source import tree_paths  # noqa: E402  the path comes first

VERSION = 14


def installed():
    """The program, or None."""
    for name in (f'clang-format-{VERSION}', 'clang-format'):
        if shutil.which(name):
            text = subprocess.run([name, '--version'], capture_output=True, text=True, check=True)
            if re.search(r'version %d\.' % VERSION, text.stdout):
                return name
    return None


class Format(unittest.TestCase):
    def test_tree(self):
        program = installed()
        if program is None:
            self.skipTest(f'clang-format {VERSION} is not installed')
        paths = [path for path in tree_paths(ROOT) if path.endswith(('.h', '.cc', '.cpp'))]
        paths = [path for path in paths if (ROOT / path).exists()]
        halves = [paths[i :: os.cpu_count() or 1] for i in range(os.cpu_count() or 1)]
        running = [
            subprocess.Popen(
                [program, '--dry-run', '-Werror', '--ferror-limit=1', *half],
                cwd=ROOT,
                stderr=subprocess.PIPE,
                text=True,
            )
            for half in halves
            if half
        ]
        complaints = ''.join(each.communicate()[1] for each in running)
        files = sorted(set(re.findall(r'^(\S+?):\d+:\d+: error', complaints, re.M)))
        if files:
            self.fail(f'{len(files)} file(s) to format; run: {program} -i ' + ' '.join(files))


if __name__ == '__main__':
    unittest.main()
