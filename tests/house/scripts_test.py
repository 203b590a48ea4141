#!/usr/bin/env python3
"""The scripts: what they say when something is missing, each as one clear line, and their style.

Each case runs a copy of scripts/ in a folder of its own, with faked programs first in PATH.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / 'scripts')]

import summary  # noqa: E402  the path comes first
from source import tree_paths  # noqa: E402

LIMIT_SECONDS = 120


class Scripts(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix='lrun-scripts-'))
        self.addCleanup(shutil.rmtree, self.folder)
        shutil.copytree(ROOT / 'scripts', self.folder / 'scripts')
        (self.folder / 'bin').mkdir()
        self.environment = {
            k: v for k, v in os.environ.items() if not k.startswith(('LRUN_', 'CXX'))
        }
        self.environment['PATH'] = f"{self.folder}/bin:{self.environment['PATH']}"

    def fake(self, name, body):
        """A program that the scripts find instead of the real one."""
        path = self.folder / 'bin' / name
        path.write_text(f'#!/bin/sh\n{body}\n', encoding='utf-8')
        path.chmod(0o755)

    def run_script(self, *words, **environment):
        return subprocess.run(
            [str(self.folder / 'scripts' / words[0]), *words[1:]],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env={**self.environment, **environment},
            check=False,
            timeout=LIMIT_SECONDS,
        )

    def assert_one_line(self, done, code, *words):
        lines = [line for line in done.stderr.splitlines() if line]
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(len(lines), 1, done.stderr)
        for word in words:
            self.assertIn(word, lines[0])

    def test_wrong_option(self):
        self.assert_one_line(self.run_script('deps', '--pear'), 2, "'--pear'", '--peer')
        self.assert_one_line(self.run_script('build', '--fast'), 2, "'--fast'")
        self.assert_one_line(self.run_script('test', 'units'), 2, "'units'", 'unit')

    def test_help(self):
        for name in ('deps', 'build', 'test'):
            done = self.run_script(name, '--help')
            self.assertEqual(done.returncode, 0)
            self.assertIn(f'scripts/{name}', done.stdout)

    def test_wrong_compiler(self):
        self.fake('old-g++', 'echo 11.2.0')
        done = self.run_script('deps', '--no-trainer', CXX='old-g++')
        self.assert_one_line(done, 1, 'wrong compiler', '11.2.0', 'g++ 12')
        done = self.run_script('deps', '--no-trainer', CXX='no-such-compiler')
        self.assert_one_line(done, 1, 'no compiler', 'no-such-compiler')

    def test_missing_packages_without_root(self):
        self.fake('id', 'echo 1000')
        self.fake('sudo', 'exit 1')
        self.fake('dpkg-query', 'exit 1')
        done = self.run_script('deps')
        self.assertEqual(done.returncode, 1)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 2, done.stderr)
        self.assertIn('administrator', lines[0])
        self.assertRegex(lines[1], r'apt-get install .*libgrpc\+\+-dev')

    def test_packages_that_cannot_be_had(self):
        self.fake('id', 'echo 0')
        self.fake('dpkg-query', 'exit 1')
        for said, words in (
            ('E: Unable to locate package libgrpc++-dev', ('missing package', 'libgrpc++-dev')),
            ("Err:1 Temporary failure resolving 'mirror'", ('no network',)),
            ("E: You don't have enough free space in /var/cache/apt", ('disk full',)),
            ('E: something else', ('log', 'something else')),
        ):
            self.fake('apt-get', f'case "$*" in *install*) echo "{said}"; exit 100;; esac')
            self.assert_one_line(self.run_script('deps', '--no-trainer'), 1, *words)

    def test_satisfied_without_root(self):
        self.fake('id', 'echo 1000')
        self.fake('sudo', 'exit 1')
        done = self.run_script('deps', '--no-trainer')
        self.assertEqual((done.returncode, done.stderr), (0, ''), done.stdout)

    def torch_is_needed(self):
        """Fakes a machine without any PyTorch; only making virtual environments works."""
        python = sys.executable
        self.fake('python3', f'case "$*" in *find_spec*) exit 1;; esac; exec {python} "$@"')

    def test_full_disk(self):
        self.torch_is_needed()
        self.fake('df', 'echo Header; echo "/dev/x 1000 990 10 99% /"')
        self.assert_one_line(self.run_script('deps'), 1, 'disk full', '10 MiB')
        self.assertFalse((self.folder / '.venv').exists())

    def test_no_network(self):
        self.torch_is_needed()
        done = self.run_script(
            'deps',
            PIP_INDEX_URL='http://127.0.0.1:9/simple',
            PIP_FIND_LINKS='',
            PIP_NO_CACHE_DIR='1',
        )
        self.assert_one_line(done, 1, 'no network')
        self.assertFalse((self.folder / '.venv').exists(), 'half of it must not be trusted')

    def test_torch_root_that_holds_none(self):
        self.assert_one_line(
            self.run_script('deps', LRUN_TORCH_ROOT='/usr'), 1, 'LRUN_TORCH_ROOT', '/usr'
        )

    def test_shellcheck(self):
        if not shutil.which('shellcheck'):
            self.skipTest('shellcheck is not installed')
        names = []
        for path in tree_paths(ROOT):
            file = ROOT / path
            if file.is_file() and file.read_bytes()[:64].startswith(
                (b'#!/usr/bin/env bash', b'#!/bin/sh')
            ):
                names.append(path)
        done = subprocess.run(
            ['shellcheck', '-x', *names], cwd=ROOT, capture_output=True, text=True, check=False
        )
        self.assertEqual(done.stdout, '')


GREEN = '''[ RUN      ] Suite.First
[       OK ] Suite.First (0 ms)
[ RUN      ] Suite.Second
a.cc:7: Skipped
needs root
[  SKIPPED ] Suite.Second (1 ms)
'''
RED = '[ RUN      ] S/Names.Bad/0\n[  FAILED  ] S/Names.Bad/0, where GetParam() = 3 (0 ms)\n'
PYTHON = '''test_a (__main__.T) ... ok
test_b (__main__.T) ... skipped 'no peer'
test_c (__main__.T.test_c) ... FAIL
FAIL: test_c (__main__.T.test_c)
Ran 3 tests in 0.1s
'''


class Summary(unittest.TestCase):
    """Cases inside of a ctest entry are counted, above all those that skipped themselves."""

    def test_gtest(self):
        self.assertEqual(
            summary.of_gtest('t', GREEN, True),
            summary.Outcome(1, [], [('t: Suite.Second', 'needs root')]),
        )
        self.assertEqual(summary.of_gtest('t', RED, False).failed, ['t: S/Names.Bad/0'])
        self.assertEqual(len(summary.of_gtest('t', GREEN, False).failed), 1, 'a crash after a case')

    def test_unittest(self):
        one = summary.of_unittest('t', PYTHON, False)
        self.assertEqual(
            (one.passed, len(one.failed), one.skipped), (1, 1, [('t: test_b', 'no peer')])
        )

    def summary_of(self, cases):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, 'release.xml')
            file.write_text(f'<testsuite>{cases}</testsuite>', encoding='utf-8')
            return subprocess.run(
                [sys.executable, str(ROOT / 'scripts/summary.py'), str(file)],
                capture_output=True,
                text=True,
                check=False,
            )

    def test_whole(self):
        good = '<testcase name="a" status="run"><system-out>fine</system-out></testcase>'
        skip = (
            '<testcase name="b" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>'
            '<system-out>no GPU here</system-out></testcase>'
        )
        done = self.summary_of(good + skip)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(
            done.stdout.splitlines(),
            ['skipped  release: b: no GPU here', '1 passed, 0 failed, 1 skipped'],
        )
        bad = '<testcase name="c" status="fail"><system-out>Killed</system-out></testcase>'
        done = self.summary_of(good + bad)
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (1, '1 passed, 1 failed'))

    def test_nothing_ran(self):
        done = self.summary_of('')
        self.assertEqual(done.returncode, 1)
        self.assertIn('no test ran', done.stdout)


if __name__ == '__main__':
    unittest.main()
