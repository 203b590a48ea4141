"""Rules on the tree as a whole: code and documentation name the same environment variables and
metrics, CMake lists every source, links lead somewhere, every rule's exception is still needed.
"""

import re
from pathlib import PurePosixPath
from typing import Callable, Dict, List, NamedTuple

import text_rules
from source import Problem

PRODUCT = ('base', 'proto', 'rendezvous', 'agent', 'launcher', 'trainer')
ENVIRONMENT = 'docs/environment.md'
METRICS = 'docs/metrics.md'
TRAINER = 'docs/trainer.md'
CONFIG_KEYS = 'trainer/train/config.cc'
EXIT_CODES = 'docs/exit-codes.md'
# Variables are words like MASTER_ADDR, or one of these.
VARIABLE = re.compile(
    r'(?:[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|RANK|HOME|PATH|LOGLEVEL|TERM|COLUMNS|USER|TMPDIR)'
)
# Words of that form that are none: constants of protocols and file formats.
NO_VARIABLES = re.compile(
    r'OK|CANCELLED|UNKNOWN|INVALID_ARGUMENT|DEADLINE_EXCEEDED|NOT_FOUND|ALREADY_EXISTS|DATA_LOSS'
    r'|PERMISSION_DENIED|RESOURCE_EXHAUSTED|FAILED_PRECONDITION|OUT_OF_RANGE|ABORTED|UNAVAILABLE'
    r'|INTERNAL|UNIMPLEMENTED|UNAUTHENTICATED|PR_[A-Z_]+'
)
METRIC = re.compile(r'(?:lrun|process)_[a-z0-9_]+')
# Written by histograms beside their own name.
HISTOGRAM_SUFFIX = re.compile(r'_(?:bucket|sum|count)$')


class Comparison(NamedTuple):
    name: str
    check: Callable[[list], List[Problem]]
    bad: List[Dict[str, str]]
    good: List[Dict[str, str]]


def document(tree, path):
    return next((source.text for source in tree if source.path == path), '')


def in_backticks(text, pattern):
    return {
        word
        for span in re.findall(r'`([^`\n]+)`', text)
        for word in pattern.findall(span)
        if pattern.fullmatch(word)
    }


def literals(tree, pattern, folders):
    """word: (path, line) of its first use as a whole string of C++."""
    found = {}
    for source in tree:
        if source.is_cpp and source.top in folders:
            for line, text in source.strings:
                if pattern.fullmatch(text):
                    found.setdefault(text, (source.path, line))
    return found


def environment(tree):
    listed = in_backticks(document(tree, ENVIRONMENT), VARIABLE)
    used = {
        word: place
        for word, place in literals(tree, VARIABLE, PRODUCT).items()
        if not NO_VARIABLES.fullmatch(word)
    }
    problems = [
        Problem(*place, f'{word} is not in {ENVIRONMENT}')
        for word, place in used.items()
        if word not in listed
    ]
    whole = ''.join(
        source.text for source in tree if source.path != ENVIRONMENT and source.suffix != '.md'
    )
    problems += [
        Problem(ENVIRONMENT, 1, f'{word} is read or set nowhere')
        for word in sorted(listed)
        if not re.search(r'\b%s\b' % word, whole)
    ]
    return problems


def metrics(tree):
    listed = in_backticks(document(tree, METRICS), METRIC)
    used = literals(tree, METRIC, ('rendezvous', 'agent', 'launcher'))
    problems = [
        Problem(*place, f'{word} is not in {METRICS}')
        for word, place in used.items()
        if word not in listed
    ]
    problems += [
        Problem(METRICS, 1, f'{word} is in no code') for word in sorted(listed - set(used))
    ]
    for source in tree:
        if source.top == 'monitoring' and source.suffix in ('.json', '.yml', '.yaml'):
            words = {
                HISTOGRAM_SUFFIX.sub('', word)
                for word in re.findall(r'\b(?:lrun|process)_[a-z0-9_]+', source.text)
            }
            problems += [
                Problem(source.path, 1, f'{word} is not in {METRICS}')
                for word in sorted(words - listed)
            ]
    return problems


def configuration(tree):
    """The keys of lrun-train's configuration are in docs/trainer.md, and back."""
    used = set(re.findall(r'\.path = "([\w.]+)"', document(tree, CONFIG_KEYS)))
    rows = re.findall(r'^\| (`.*?`) \|', document(tree, TRAINER), re.M)
    listed = {key for row in rows for key in re.findall(r'`([a-z]+(?:\.\w+)?)`', row)}
    listed = {key for key in listed if '.' in key or key in ('seed', 'strategy')}
    problems = [Problem(CONFIG_KEYS, 1, f'{key} is not in {TRAINER}') for key in used - listed]
    return problems + [Problem(TRAINER, 1, f'{key} is no key') for key in listed - used]


def exit_codes(tree):
    """docs/exit-codes.md repeats launcher/exit_codes.h; k8s/ fails a job on those that say no."""
    codes = dict(re.findall(r'\b(kExit\w+) = (\d+);', document(tree, 'launcher/exit_codes.h')))
    row = r'^\| (?:(\d+)|(\d+) \+ n) \|.*`(kExit\w+)`.*\| *(.*?) *\|$'
    rows = re.findall(row, document(tree, EXIT_CODES), re.M)
    listed = {name: plain or base for plain, base, name, _ in rows}
    problems = [
        Problem(EXIT_CODES, 1, f'{name}: {listed.get(name)} here, {codes.get(name)} in the code')
        for name in sorted({*codes, *listed})
        if codes.get(name) != listed.get(name)
    ]
    final = sorted((plain for plain, _, _, again in rows if again == 'no'), key=int)
    for source in tree:
        for line, values in source.find(r'(?<=values: )\[[\d, ]+\]', source.text):
            if source.top == 'k8s' and re.findall(r'\d+', values) != final:
                problems.append(Problem(source.path, line, f'exit codes {values}, not {final}'))
    return problems


def cmake_lists(tree):
    """Every source stands in a CMake file of its folder or of one above, or with its whole path."""
    lists = [(PurePosixPath(source.path).parent, source.text) for source in tree if source.is_cmake]
    problems = []
    for source in tree:
        if source.suffix not in ('.cc', '.proto'):
            continue
        path = PurePosixPath(source.path)
        if not any(
            re.search(r'/%s(?!\w)' % re.escape(source.path), text)
            or folder in path.parents
            and re.search(r'(?<![\w/])%s(?!\w)' % re.escape(str(path.relative_to(folder))), text)
            for folder, text in lists
        ):
            problems.append(Problem(source.path, 1, 'is in no CMakeLists.txt'))
    return problems


def links(tree):
    """Relative links and images of documents lead to a file of the tree."""
    paths = {source.path for source in tree}
    folders = {str(parent) for path in paths for parent in PurePosixPath(path).parents}
    problems = []
    for source in tree:
        if source.suffix != '.md':
            continue
        for line, link in source.find(r'\]\((?!https?:|mailto:|#)[^)\s]+\)', source.text):
            target = link[2:-1].split('#')[0]
            parts = []
            for part in (*PurePosixPath(source.path).parent.parts, *PurePosixPath(target).parts):
                parts = parts[:-1] if part == '..' else parts + [part]
            if '/'.join(parts) not in paths | folders:
                problems.append(Problem(source.path, line, f'{target} does not exist'))
    return problems


def named_documents(tree):
    """A page that a comment names exists, and so does the section."""
    pages = {PurePosixPath(s.path).name: s.text for s in tree if s.suffix == '.md'}
    problems = []
    for source in tree:
        if not source.is_code or source.path.startswith('tests/house/'):
            continue
        for line, found in source.find(r'\b[\w-]+\.md\b(?: §\d+(?:\.\d+)*)?', source.text):
            name, _, section = found.partition(' §')
            heading = r'^#+ (?:§)?%s\b' % re.escape(section)
            if name not in pages:
                problems.append(Problem(source.path, line, f'{name} does not exist'))
            elif section and not re.search(heading, pages[name], re.M):
                problems.append(Problem(source.path, line, f'{name} has no section {section}'))
    return problems


def exceptions(tree):
    """An exception that is no longer needed goes."""
    by_path = {source.path: source for source in tree}
    problems = []
    for path in text_rules.LONG_FILES:
        if path not in by_path or by_path[path].text.count('\n') <= text_rules.FILE_LINES_MOST:
            problems.append(
                Problem('tests/house/text_rules.py', 1, f'{path} needs no exception for its length')
            )
    for path, name in text_rules.LONG_FUNCTIONS:
        lengths = (
            [f.length for f in by_path[path].functions() if f.name == name]
            if path in by_path
            else []
        )
        if max(lengths, default=0) <= text_rules.FUNCTION_LINES_MOST:
            problems.append(
                Problem('tests/house/text_rules.py', 1, f'{path} {name} needs no exception')
            )
    return problems


USAGE_ROW = '| 2 | usage | `kExitUsage` | no |\n'

COMPARISONS = [
    Comparison(
        'environment',
        environment,
        [
            {'agent/a.cc': 'getenv("LRUN_NEW");\n', ENVIRONMENT: ''},
            {'agent/a.cc': '', ENVIRONMENT: '`LRUN_OLD`\n'},
        ],
        [{'agent/a.cc': 'getenv("LRUN_NEW");\n// "LRUN_NONE"\n', ENVIRONMENT: '| `LRUN_NEW` |\n'}],
    ),
    Comparison(
        'metrics',
        metrics,
        [
            {'agent/metrics.cc': '"lrun_new"\n', METRICS: ''},
            {'agent/metrics.cc': '', METRICS: '`lrun_old`\n'},
            {'monitoring/a.json': '{"expr": "rate(lrun_x_total[5m])"}\n', METRICS: ''},
        ],
        [
            {
                'agent/metrics.cc': '"lrun_x_seconds"\n',
                METRICS: '`lrun_x_seconds`\n',
                'monitoring/a.json': '{"expr": "rate(lrun_x_seconds_bucket[5m])"}\n',
            }
        ],
    ),
    Comparison(
        'configuration',
        configuration,
        [
            {CONFIG_KEYS: '{.path = "a.b", .place = &c.b}', TRAINER: ''},
            {CONFIG_KEYS: '', TRAINER: '| `a.b` | 1 | x |\n'},
        ],
        [
            {
                CONFIG_KEYS: '{.path = "a.b"}, {.path = "a.c_d"}, {.path = "seed"}',
                TRAINER: '| `a.b`, `a.c_d` | 1 | x |\n| `seed` | 2 | y |\n',
            }
        ],
    ),
    Comparison(
        'exit codes',
        exit_codes,
        [
            {'launcher/exit_codes.h': 'int kExitUsage = 2;\n', EXIT_CODES: ''},
            {
                'launcher/exit_codes.h': 'int kExitUsage = 2;\n',
                EXIT_CODES: USAGE_ROW.replace('2', '3'),
            },
            {
                'k8s/job.yaml': 'values: [1, 2]\n',
                EXIT_CODES: USAGE_ROW,
                'launcher/exit_codes.h': 'int kExitUsage = 2;\n',
            },
        ],
        [
            {
                'launcher/exit_codes.h': 'int kExitUsage = 2;\n',
                EXIT_CODES: USAGE_ROW,
                'k8s/job.yaml': 'values: [2]\n',
            }
        ],
    ),
    Comparison(
        'cmake lists',
        cmake_lists,
        [{'agent/CMakeLists.txt': 'ab.cc\n', 'agent/b.cc': ''}, {'agent/b.cc': ''}],
        [
            {'agent/CMakeLists.txt': 'lrun_library(x SOURCES\n  b.cc)\n', 'agent/b.cc': ''},
            {'CMakeLists.txt': 'agent/b.cc', 'agent/b.cc': ''},
        ],
    ),
    Comparison(
        'links',
        links,
        [{'docs/a.md': '[x](b.md)\n'}, {'README.md': '![x](docs/none.svg)\n'}],
        [
            {
                'docs/a.md': '[x](../README.md#part) [y](https://a.b/c) [z](#here)\n',
                'README.md': '[d](docs/) [f](docs/a.md)\n',
            }
        ],
    ),
    Comparison(
        'named documents',
        named_documents,
        [
            {'agent/a.h': '// see docs/none.md\n'},
            {'agent/a.h': '// see b.md §3.2\n', 'docs/b.md': '## 3.1 x\n'},
        ],
        [{'agent/a.h': '// see docs/b.md, b.md §3.1 and §7\n', 'docs/b.md': '### 3.1 x\n'}],
    ),
    Comparison('exceptions', exceptions, [], [{}]),
]
