"""Rules that one file can break by itself: size, clocks, sleeping, threads, names, leftovers."""

import re

from source import Problem, Rule

WIDTH_MOST = 100
FUNCTION_LINES_MOST = 60
FILE_LINES_MOST = 400
# path: why it may be longer
LONG_FILES = {}
# (path, function): why it may be longer
LONG_FUNCTIONS = {}

ORCHESTRATOR = ('base', 'proto', 'rendezvous', 'agent', 'launcher')
# Programs of several processes, where one side can only look again after a while; and a worker that
# misbehaves on purpose.
MAY_SLEEP = (
    'tests/e2e/',
    'tests/cluster/',
    'tests/testbed/',
    'scripts/',
    'bench/',
    'tests/agent/io_worker.cc',
    'tests/trainer/parallel/worlds.cc',
)
# path: why it may start or guard threads
THREADS = {}


def width(source):
    if not source.is_code:
        return
    for number, line in source.lines():
        if len(line) > WIDTH_MOST:
            yield Problem(source.path, number, f'{len(line)} columns, at most {WIDTH_MOST}')


def file_length(source):
    lines = source.text.count('\n')
    if source.is_code and lines > FILE_LINES_MOST and source.path not in LONG_FILES:
        yield Problem(
            source.path, 1, f'{lines} lines, at most {FILE_LINES_MOST}: split it by concept'
        )


def function_length(source):
    for name, line, length in source.functions():
        if length > FUNCTION_LINES_MOST and (source.path, name) not in LONG_FUNCTIONS:
            yield Problem(
                source.path, line, f'{name} has {length} lines, at most {FUNCTION_LINES_MOST}'
            )


def sleeping(source):
    if source.path.startswith(MAY_SLEEP) or not (source.is_cpp or source.is_python):
        return
    pattern = r'\b(?:time\.|::)?(?:sleep|usleep|nanosleep|sleep_for|sleep_until)\((?!\))'
    for line, call in source.find(pattern, source.code if source.is_cpp else source.text):
        yield Problem(source.path, line, f'{call}…): wait for an event with a deadline instead')


def threads(source):
    if source.top not in ORCHESTRATOR or not source.is_cpp or source.path in THREADS:
        return
    pattern = (
        r'\bstd::(?:j?thread|\w*mutex|async|condition_variable\w*|lock_guard|scoped_lock)\b'
        r'|\bpthread_create\b|\.detach\(\)'
    )
    for line, word in source.find(pattern):
        yield Problem(source.path, line, f'{word}: the loop owns everything; post to it')


def using_namespace(source):
    if source.is_header:
        for line, _ in source.find(r'\busing\s+namespace\b'):
            yield Problem(source.path, line, 'using namespace in a header')


def leftovers(source):
    # Written in two halves, so that this file passes its own rule.
    pattern = r'\b(?:TO' r'DO|FIX' r'ME|XX' r'X|HA' r'CK)\b'
    for line, word in source.find(pattern, source.text):
        yield Problem(source.path, line, f'leftover marker {word}: do it, or file it')


def one_machine(source):
    pattern = r'(?<![\w./~}])/(?:home/\w+|Users/\w+|wo' r'rk|ro' r'ot)/\w'
    for line, path in source.find(pattern, source.text):
        yield Problem(source.path, line, f'{path}…: a path of one machine')


def vague_names(source):
    if not source.is_cpp:
        return
    for line, name in source.find(
        r'\b(?:class|struct|namespace)\s+\w*(?:[Mm]anager|[Hh]andler|[Hh]elper|[Uu]til)s?\b'
    ):
        yield Problem(source.path, line, f'{name}: vague, say what it does')
    if re.search(r'(?:manager|handler|helper|util|common)s?\.(?:h|cc)$', source.path):
        yield Problem(source.path, 1, 'vague file name, say what it owns')


def header_opening(source):
    if not source.is_header:
        return
    if not source.text.startswith('//'):
        yield Problem(
            source.path,
            1,
            'a header opens with a summary: owns what, refuses to know what, who calls it',
        )
    if not re.search(r'^#pragma once$', source.text, re.M):
        yield Problem(source.path, 1, 'no #pragma once')


def whitespace(source):
    if not source.is_code and source.suffix not in ('.md', '.yaml', '.yml', '.json'):
        return
    for number, line in source.lines():
        if line != line.rstrip() or '\t' in line and not source.is_script:
            yield Problem(source.path, number, 'tab, or white space at the end')
    if source.text and not source.text.endswith('\n'):
        yield Problem(source.path, source.text.count('\n') + 1, 'no newline at the end')


SLEEP = 'sleep'  # so that the samples below are no sleeping themselves
LONG_BODY = 'int f() {\n' + '  g();\n' * 59 + '}\n'
FITTING_BODY = 'int f() {\n' + '  g();\n' * 58 + '}\n'

RULES = [
    Rule(
        'width',
        width,
        [('agent/a.cc', 'x' * 101 + '\n'), ('scripts/build', 'é' * 101 + '\n')],
        [('agent/a.cc', 'é' * 100 + '\n'), ('docs/a.md', 'x' * 300 + '\n')],
    ),
    Rule(
        'file length',
        file_length,
        [('agent/a.cc', '\n' * 401), ('tests/e2e/a.py', '\n' * 401)],
        [('agent/a.cc', '\n' * 400), ('docs/a.md', '\n' * 500)],
    ),
    Rule(
        'function length',
        function_length,
        [
            ('agent/a.cc', LONG_BODY),
            ('agent/a.cc', 'class A {\n public:\n  A() : a_{1}, b_{2} {\n' + '\n' * 60 + '}\n};\n'),
            (
                'agent/a.cc',
                'namespace n {\nvoid A::f(int a = 3) const {\n if (x) {\n'
                + '\n' * 60
                + '}\n}\n}\n',
            ),
            ('agent/a.cc', 'TEST(Suite, Case) {\n' + '\n' * 60 + '}\n'),
            ('tests/e2e/a.py', 'def f():\n' + '    g()\n' * 60),
            ('scripts/x.sh', 'f() {\n' + '  g\n' * 59 + '}\n'),
        ],
        [
            ('agent/a.cc', FITTING_BODY * 3),
            ('agent/a.cc', 'const Row kRows[] = {\n' + '  {1},\n' * 70 + '};\n'),
            ('agent/a.h', 'class A {\n' + '  int f() { return 1; }\n' * 70 + '};\n'),
            ('tests/e2e/a.py', 'def f():\n' + '    g()\n' * 59),
        ],
    ),
    Rule(
        'sleeping',
        sleeping,
        [
            ('agent/a.cc', f'std::this_thread::{SLEEP}_for(x);\n'),
            ('tests/agent/a.cc', f'u{SLEEP}(1);\n'),
            ('tests/house/a.py', f'time.{SLEEP}(1)\n'),
        ],
        [
            ('tests/e2e/a.py', f'time.{SLEEP}(1)\n'),
            ('agent/a.cc', f'// {SLEEP}(1)\nlog("{SLEEP}(1)");\n'),
        ],
    ),
    Rule(
        'threads',
        threads,
        [
            ('agent/a.cc', 'std::thread t;\n'),
            ('rendezvous/a.h', 'std::mutex m_;\n'),
            ('base/a.cc', 't.detach();\n'),
            ('launcher/a.cc', 'auto x = std::async(f);\n'),
        ],
        [('trainer/comm/a.cc', 'std::thread t;\n'), ('agent/a.cc', '// no std::thread here\n')],
    ),
    Rule(
        'using namespace',
        using_namespace,
        [('agent/a.h', 'using namespace std;\n')],
        [
            ('agent/a.cc', 'using namespace std::chrono_literals;\n'),
            ('agent/a.h', 'using std::string;\n'),
        ],
    ),
    Rule(
        'leftovers',
        leftovers,
        [('agent/a.cc', '// TO' 'DO: later\n'), ('docs/a.md', 'FIX' 'ME\n')],
        [('agent/a.cc', 'mktemp XXXXXX\n'), ('agent/a.cc', 'kToDone\n')],
    ),
    Rule(
        'one machine',
        one_machine,
        [('scripts/build', 'cd /ho' 'me/ann/lrun\n'), ('docs/a.md', 'see /wo' 'rk/main\n')],
        [
            ('scripts/build', 'cd /usr/share/x ~/work/x $HOME/root/x\n'),
            ('docs/a.md', 'https://x.org/work/a\n'),
        ],
    ),
    Rule(
        'vague names',
        vague_names,
        [
            ('agent/a.cc', 'class NodeManager {\n'),
            ('agent/utils.h', ''),
            ('agent/a.cc', 'namespace helpers {\n'),
        ],
        [('agent/a.cc', 'class NodeLock {\n'), ('agent/a.cc', '// class NodeManager\n')],
    ),
    Rule(
        'header opening',
        header_opening,
        [('agent/a.h', '#pragma once\n'), ('agent/a.h', '// Owns x.\n')],
        [('agent/a.h', '// Owns x.\n#pragma once\n'), ('agent/a.cc', '#include <map>\n')],
    ),
    Rule(
        'white space',
        whitespace,
        [('agent/a.cc', 'int a; \n'), ('docs/a.md', 'x'), ('agent/a.cc', '\tint a;\n')],
        [('agent/a.cc', 'int a;\n'), ('agent/a.cc', '')],
    ),
]
