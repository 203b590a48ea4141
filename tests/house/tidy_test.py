#!/usr/bin/env python3
"""The house rules of the source tree (CONTRIBUTING.md names them). Standard library only, fast.

    tests/house/tidy_test.py        from anywhere

Every rule brings samples that it must catch and samples that it must let pass, so that a rule that
cannot fail is noticed.
"""

import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

import document_rules  # noqa: E402  the path comes first
import layer_rules  # noqa: E402
import text_rules  # noqa: E402
from source import Source, tree_paths  # noqa: E402


def read_tree():
    for path in tree_paths(ROOT):
        try:
            yield Source(path, (ROOT / path).read_text(encoding='utf-8'))
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue


RULES = text_rules.RULES + layer_rules.RULES
TREE = list(read_tree())


class HouseRules(unittest.TestCase):
    """One test a rule; they are added below."""


class RulesOfTheRules(unittest.TestCase):
    """Each rule catches its bad samples, one by one, and lets the good ones pass."""


def add_tests(rule):
    def on_tree(self):
        problems = [str(problem) for source in TREE for problem in rule.check(source)]
        if problems:
            self.fail(f'{len(problems)} problem(s):\n' + '\n'.join(problems))

    def on_samples(self):
        self.assertTrue(rule.bad and rule.good, 'a rule needs samples of both kinds')
        for path, text in rule.bad:
            self.assertTrue(
                list(rule.check(Source(path, text))), f'not caught in {path}:\n{text[:200]}'
            )
        for path, text in rule.good:
            self.assertEqual(
                list(rule.check(Source(path, text))), [], f'wrongly caught in {path}:\n{text[:200]}'
            )

    name = rule.name.replace(' ', '_')
    setattr(HouseRules, f'test_{name}', on_tree)
    setattr(RulesOfTheRules, f'test_{name}', on_samples)


layer_rules.read_pure_targets(TREE)
for each in RULES:
    add_tests(each)


class Documents(unittest.TestCase):
    """What code and documentation say of each other, compared both ways."""


class DocumentsOfTheRules(unittest.TestCase):
    """The comparisons notice a word that one side lacks."""


def add_comparison(comparison):
    def on_tree(self):
        problems = comparison.check(TREE)
        if problems:
            self.fail(f'{len(problems)} problem(s):\n' + '\n'.join(map(str, problems)))

    def on_samples(self):
        for tree in comparison.bad:
            sources = [Source(path, text) for path, text in tree.items()]
            self.assertTrue(comparison.check(sources), f'not caught: {tree}')
        for tree in comparison.good:
            sources = [Source(path, text) for path, text in tree.items()]
            self.assertEqual(comparison.check(sources), [], f'wrongly caught: {tree}')

    name = comparison.name.replace(' ', '_')
    setattr(Documents, f'test_{name}', on_tree)
    setattr(DocumentsOfTheRules, f'test_{name}', on_samples)


for each in document_rules.COMPARISONS:
    add_comparison(each)

if __name__ == '__main__':
    unittest.main(verbosity=1)
