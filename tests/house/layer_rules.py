"""Who may include whom: the table of docs/architecture.md, read from every #include.

    proto ← rendezvous ← agent ← launcher        trainer sees only proto/ and base/

A pure file (a state machine and what it needs) includes the standard library and other pure files.
Which files are pure is said by CMake: the sources of lrun_proto, lrun_rendezvous_core and
lrun_agent_core, their headers, and the headers named below.
"""

import re
from pathlib import Path

from source import Problem, Rule

PURE_TARGETS = {
    'proto/CMakeLists.txt': 'lrun_proto',
    'rendezvous/CMakeLists.txt': 'lrun_rendezvous_core',
    'agent/CMakeLists.txt': 'lrun_agent_core',
}
PURE_HEADERS = {
    'proto/ids',
    'proto/worker_env',
    'proto/channel',
    'rendezvous/events',
    'rendezvous/state_machine',
    'rendezvous/blackboard',
    'rendezvous/invariants',
    'agent/events',
    'agent/supervisor',
    'agent/restart_policy',
    'agent/stall_detector',
    'agent/root_cause',
    'trainer/comm/tree',
    'trainer/comm/range',
    'trainer/data/elastic_sampler',
    'trainer/optim/schedules',
}
GRPC_FILES = {
    f'rendezvous/{name}.cc'
    for name in ('server', 'client', 'convert', 'convert_nouns', 'convert_status', 'transport')
}

# First match wins: what an included name is.
KINDS = [
    ('grpc', r'<(?:grpc|google/protobuf|absl|upb).*>|".*\.pb\.h"|".*\.grpc\.pb\.h"'),
    ('torch', r'[<"](?:torch|ATen|c10|caffe2|cuda|cublas|nccl)(?:[./_].*)?[>"]'),
    ('prometheus', r'<prometheus/.*>'),
    ('beast', r'<boost/beast.*>'),
    ('asio', r'<boost/.*>'),
    ('library', r'<(?:CLI|nlohmann|yaml-cpp|spdlog|fmt|openssl)/.*>|<(?:xxhash|zlib)\.h>'),
    ('posix', r'<(?:\w+\.h|(?:sys|linux|netinet|arpa|net)/.*)>'),
    ('standard', r'<\w+>'),
    ('own', r'"[a-z]\w*/.*"'),
]
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+([<"][^>"\n]+[>"])', re.M)
PURE_LAYERS = ('proto', 'rendezvous', 'agent')
LAYERS = ('base', 'proto', 'rendezvous', 'agent', 'launcher', 'trainer')


def kind_of(name):
    return next((kind for kind, pattern in KINDS if re.fullmatch(pattern, name)), 'unknown')


def stem(path):
    return path.rsplit('.', 1)[0]


def read_pure_targets(tree):
    """Learns which files are pure: what CMake lists for the pure targets, and headers without a
    source that include nothing but pure files."""
    text = {source.path: source.text for source in tree}
    for file, target in PURE_TARGETS.items():
        found = re.search(r'lrun_library\(\s*%s\s(.*?)\)' % target, text.get(file, ''), re.S)
        sources = re.findall(r'[\w/]+\.cc', found.group(1)) if found else []
        PURE_HEADERS.update(f'{Path(file).parent}/{stem(source)}' for source in sources)
    headers = [
        source
        for source in tree
        if source.is_header
        and source.top in PURE_LAYERS
        and not {stem(source.path) + '.cc'} & (set(text) | GRPC_FILES)
    ]
    for _ in headers:  # one may include another: at most so many rounds
        PURE_HEADERS.update(stem(source.path) for source in headers if includes_only_pure(source))


def includes_only_pure(source):
    return all(
        kind_of(name) == 'standard' or is_pure(name.strip('"')) for _, name in includes(source)
    )


def is_pure(path):
    return stem(path) in PURE_HEADERS


def kinds_allowed(path):
    """Kinds of foreign headers that a file may include."""
    top, name = path.split('/')[0], stem(path.split('/')[-1])
    if top == 'proto':  # a JSON reader, but in no header
        return {'standard'} if path.endswith('.h') else {'standard', 'library'}
    if is_pure(path):
        return {'standard'}
    if top == 'base':
        return {'standard', 'posix', 'asio', 'library'}
    if top == 'trainer':
        return {'standard', 'posix', 'library', 'torch'} | (
            {'asio'} if path.startswith('trainer/comm/') else set()
        )
    allowed = {'standard', 'posix', 'asio', 'library'}
    if path in GRPC_FILES:
        allowed |= {'grpc'}
    if top == 'launcher' or name.startswith('metrics'):
        allowed |= {'prometheus', 'beast'}
    return allowed


def may_include(path, included):
    """Whether `path` may include lrun's own header `included`."""
    top, other = path.split('/')[0], included.split('/')[0]
    if is_pure(path):
        if other == 'proto' or other == top:
            return is_pure(included)
        return top == 'agent' and included == 'rendezvous/events.h'
    order = {
        'base': ('base', 'proto'),
        'proto': ('base', 'proto'),
        'trainer': ('base', 'proto', 'trainer'),
        'rendezvous': ('base', 'proto', 'rendezvous'),
        'agent': ('base', 'proto', 'rendezvous', 'agent'),
        'launcher': ('base', 'proto', 'rendezvous', 'agent', 'launcher'),
    }
    return other in order[top]


def includes(source):
    return [(source.line_of(m.start()), m.group(1)) for m in INCLUDE.finditer(source.text)]


def layers(source):
    if source.top not in LAYERS or not source.is_cpp:
        return
    for line, name in includes(source):
        kind = kind_of(name)
        if kind == 'unknown':
            yield Problem(
                source.path,
                line,
                f'{name}: own headers are named from the root, others must be known here',
            )
        elif kind == 'own' and not may_include(source.path, name.strip('"')):
            yield Problem(
                source.path,
                line,
                f'{name} is above this file, or not pure (docs/architecture.md, layers)',
            )
        elif kind not in kinds_allowed(source.path) | {'own'}:
            yield Problem(
                source.path,
                line,
                f'{name} ({kind}) is not for this file (docs/architecture.md, layers)',
            )


def own_header_first(source):
    if source.top not in LAYERS or source.suffix != '.cc':
        return
    names = [name.strip('"<>') for _, name in includes(source)]
    own = stem(source.path) + '.h'
    if own in names and names[0] != own:
        yield Problem(source.path, 1, f'"{own}" comes first, so that it is known to stand alone')


def clocks(source):
    """Pure files are told the time; of base/, only the log's time stamp asks for it."""
    if source.top not in LAYERS or not source.is_cpp or source.path == 'base/log.cc':
        return
    if source.top == 'base' or source.top == 'proto' or is_pure(source.path):
        pattern = r'\bnow\(\)|\bclock_gettime\(|\bgettimeofday\(|\btime\((?:nullptr|NULL|0)\)'
        for line, call in source.find(pattern):
            yield Problem(source.path, line, f'{call}: time is passed in here')


def trainer_tests(source):
    """No test sees both worlds: the wheel's Protobuf headers would shadow the system's."""
    if not source.path.startswith('tests/') or not source.is_cpp:
        return
    kinds = {kind_of(name) for _, name in includes(source)}
    if {'grpc', 'torch'} <= kinds:
        yield Problem(source.path, 1, 'LibTorch and gRPC in one file')


RULES = [
    Rule(
        'layers',
        layers,
        [
            ('agent/supervisor.cc', '#include <unistd.h>\n'),
            ('agent/supervisor.cc', '#include "base/log.h"\n'),
            ('agent/supervisor.cc', '#include "rendezvous/link.h"\n'),
            ('rendezvous/events.h', '#include "agent/events.h"\n'),
            ('rendezvous/service.cc', '#include "agent/events.h"\n'),
            ('rendezvous/service.cc', '#include <grpcpp/grpcpp.h>\n'),
            ('rendezvous/client.h', '#include "proto/rendezvous.grpc.pb.h"\n'),
            ('agent/agent.cc', '#include <torch/torch.h>\n'),
            ('trainer/loop/a.cc', '#include "agent/events.h"\n'),
            ('trainer/loop/a.cc', '#include <grpcpp/grpcpp.h>\n'),
            ('trainer/loop/a.cc', '#include <boost/asio.hpp>\n'),
            ('launcher/main.cc', '#include "trainer/comm/comm.h"\n'),
            ('agent/process.cc', '#include <prometheus/gauge.h>\n'),
            ('agent/a.cc', '#include "events.h"\n'),
            ('proto/ids.h', '#include "base/fd.h"\n'),
            ('proto/channel.h', '#include <nlohmann/json.hpp>\n'),
            ('base/fd.h', '#include "agent/events.h"\n'),
        ],
        [
            (
                'agent/supervisor.cc',
                '#include "agent/supervisor.h"\n#include <map>\n#include "rendezvous/events.h"\n',
            ),
            (
                'rendezvous/client.cc',
                '#include <grpcpp/grpcpp.h>\n#include "proto/rendezvous.grpc.pb.h"\n',
            ),
            ('agent/metrics.cc', '#include <prometheus/gauge.h>\n'),
            ('trainer/comm/tcp.cc', '#include <boost/asio/io_context.hpp>\n'),
            ('trainer/loop/a.cc', '#include <ATen/Parallel.h>\n#include "proto/channel.h"\n'),
            ('launcher/main.cc', '#include "agent/agent.h"\n#include <sys/socket.h>\n'),
        ],
    ),
    Rule(
        'own header first',
        own_header_first,
        [('agent/agent.cc', '#include <map>\n#include "agent/agent.h"\n')],
        [
            ('agent/agent.cc', '#include "agent/agent.h"\n#include <map>\n'),
            ('agent/agent.cc', '#include <map>\n'),
        ],
    ),
    Rule(
        'clocks',
        clocks,
        [
            ('rendezvous/state_machine.cc', 'auto t = std::chrono::steady_clock::now();\n'),
            ('agent/supervisor.cc', 'clock_gettime(CLOCK_MONOTONIC, &t);\n'),
            ('base/fd.h', 'time(nullptr)\n'),
        ],
        [
            ('agent/agent.cc', 'auto t = Clock::now();\n'),
            ('base/log.cc', 'now()\n'),
            ('rendezvous/state_machine.cc', '// never now()\nstep(now, event);\n'),
        ],
    ),
    Rule(
        'trainer tests',
        trainer_tests,
        [('tests/trainer/a.cc', '#include <torch/torch.h>\n#include <grpcpp/grpcpp.h>\n')],
        [
            ('tests/trainer/a.cc', '#include <torch/torch.h>\n'),
            ('tests/rendezvous/a.cc', '#include <grpcpp/grpcpp.h>\n'),
        ],
    ),
]
