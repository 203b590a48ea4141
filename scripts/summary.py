#!/usr/bin/env python3
"""Counts the cases of ctest's JUnit files and closes with `N passed, N failed, N skipped`.

    summary.py RESULTS.xml ..

One ctest entry is often a program of many cases (GoogleTest, unittest), and a case that skips
itself leaves its program green. So cases are counted from the output of each program, and every
skipped one is listed with its reason. Exit 1 if anything failed, or if nothing ran.
"""

import re
import sys
import xml.etree.ElementTree as tree
from pathlib import Path
from typing import NamedTuple

GTEST_END = re.compile(r'^\[ +(OK|FAILED|SKIPPED) +\] (\S+?)(?:, where .*)? \(\d+ ms\)$', re.M)
GTEST_REASON = re.compile(r'^\[ RUN +\] %s\n(.*?)^\[ +SKIPPED +\]', re.M | re.S)
UNITTEST_TOTAL = re.compile(r'^Ran (\d+) tests? in ', re.M)
UNITTEST_SKIP = re.compile(r"^(\w+) \(.*?\) ?.*?\.\.\. skipped ['\"](.*)['\"]$", re.M)
UNITTEST_BAD = re.compile(r'^(?:ERROR|FAIL): (.+)$', re.M)


class Outcome(NamedTuple):
    """What one ctest entry adds to the sum."""

    passed: int
    failed: list  # names
    skipped: list  # (name, reason)


def gtest_reason(output, case):
    found = re.search(GTEST_REASON.pattern % re.escape(case), output, re.M | re.S)
    text = found.group(1) if found else ''
    lines = [
        line
        for line in text.splitlines()
        if line.strip() and not re.match(r'^\S+:\d+: Skipped$', line)
    ]
    return ' '.join(lines).strip() or 'no reason given'


def of_gtest(name, output, is_green):
    ends = GTEST_END.findall(output)
    failed = [f'{name}: {case}' for end, case in ends if end == 'FAILED']
    if not is_green and not failed:
        failed = [f'{name}: ended outside of a case (crash or time-out)']
    skipped = [
        (f'{name}: {case}', gtest_reason(output, case)) for end, case in ends if end == 'SKIPPED'
    ]
    return Outcome(sum(end == 'OK' for end, _ in ends), failed, skipped)


def of_unittest(name, output, is_green):
    total = sum(map(int, UNITTEST_TOTAL.findall(output)))
    skipped = [(f'{name}: {case}', reason) for case, reason in UNITTEST_SKIP.findall(output)]
    failed = [f'{name}: {case}' for case in UNITTEST_BAD.findall(output)]
    if not is_green and not failed:
        failed = [f'{name}: ended outside of a case']
    return Outcome(max(0, total - len(failed) - len(skipped)), failed, skipped)


def outcome(case):
    """The Outcome of one <testcase>."""
    name, status = case.get('name'), case.get('status')
    output = case.findtext('system-out') or ''
    skip = case.find('skipped')
    if skip is not None and skip.get('message') == 'SKIP_RETURN_CODE=77':
        lines = [line for line in output.splitlines() if line.strip()]
        return Outcome(0, [], [(name, lines[-1] if lines else 'no reason given')])
    if status == 'disabled':
        return Outcome(0, [], [(name, 'disabled')])
    is_green = status == 'run'
    if GTEST_END.search(output):
        return of_gtest(name, output, is_green)
    if UNITTEST_TOTAL.search(output):
        return of_unittest(name, output, is_green)
    return Outcome(1, [], []) if is_green else Outcome(0, [name], [])


def main(files):
    passed, failed, skipped = 0, [], []
    for file in files:
        build = Path(file).stem
        for case in tree.parse(file).getroot().iter('testcase'):
            one = outcome(case)
            passed += one.passed
            failed += [f'{build}: {name}' for name in one.failed]
            skipped += [(f'{build}: {name}', reason) for name, reason in one.skipped]
    for name, reason in skipped:
        print(f'skipped  {name}: {reason}')
    for name in failed:
        print(f'FAILED   {name}')
    if passed + len(failed) == 0:
        failed.append('no test ran')
        print('FAILED   no test ran')
    print(
        f'{passed} passed, {len(failed)} failed' + (f', {len(skipped)} skipped' if skipped else '')
    )
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
