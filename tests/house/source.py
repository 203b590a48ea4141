"""One source file as the house rules see it, and what a rule is.

Owns reading, blanking comments and strings, and finding function bodies; knows no rule.
"""

import ast
import functools
import re
import subprocess
from pathlib import Path
from typing import Callable, Iterator, List, NamedTuple, Tuple

CPP = ('.h', '.cc', '.cpp')
# Comments, raw strings, strings, characters (but not the digit separator of 1'000).
TOKEN = re.compile(
    r'(?P<comment>//[^\n]*|/\*.*?\*/)'
    r'|(?P<raw>R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)")'
    r'|(?P<string>"(?:\\.|[^"\\\n])*")'
    r"|(?P<character>(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+')",
    re.S,
)
# Braces after these open a scope in which functions stand.
SCOPE = re.compile(
    r'(?:template\s*<.*>\s*)?(?:typedef\s+)?(?:inline\s+)?'
    r'(?:namespace|class|struct|enum|union|extern)\b',
    re.S,
)
ACCESS = re.compile(r'\s*(?:(?:public|private|protected)\s*:(?!:)\s*)*')


def tree_paths(root: Path) -> List[str]:
    """Every file that git has or would have after `git add`; without git, all but builds."""
    listed = subprocess.run(
        ['git', '-C', str(root), 'ls-files', '-co', '--exclude-standard'],
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0:
        return sorted(set(listed.stdout.splitlines()))
    all_files = (str(path.relative_to(root)) for path in root.rglob('*') if path.is_file())
    return sorted(path for path in all_files if not path.startswith(('build', '.venv', '.git/')))


def blank(text):
    """As many lines and columns, nothing in them."""
    return re.sub(r'[^\n]', ' ', text)


class Function(NamedTuple):
    name: str
    line: int
    length: int


class Source:
    """A file of the tree: `path` is relative to the root, with slashes."""

    def __init__(self, path: str, text: str):
        self.path, self.text = path, text
        self.suffix = Path(path).suffix
        self.is_cpp = self.suffix in CPP
        self.is_header = self.suffix == '.h'
        self.is_python = self.suffix == '.py'
        self.top = path.split('/')[0]
        self.is_script = (
            path.startswith('scripts/')
            and not self.suffix
            or self.suffix == '.sh'
            or path == '.ci/run'
        )
        self.is_cmake = self.suffix == '.cmake' or path.endswith('CMakeLists.txt')
        self.is_code = (
            self.is_cpp
            or self.is_python
            or self.is_script
            or self.is_cmake
            or self.suffix == '.proto'
        )

    @functools.cached_property
    def code(self) -> str:
        """C++ without comments and without the insides of strings."""

        def strip(found):
            return (
                blank(found.group(0))
                if found.group('comment')
                else '"' + blank(found.group(0))[2:] + '"'
            )

        return TOKEN.sub(strip, self.text)

    @functools.cached_property
    def strings(self) -> List[Tuple[int, str]]:
        """(line, content) of each ordinary string of C++."""
        return [
            (self.line_of(m.start()), m.group('string')[1:-1])
            for m in TOKEN.finditer(self.text)
            if m.group('string')
        ]

    def line_of(self, offset: int) -> int:
        return self.text.count('\n', 0, offset) + 1

    def lines(self) -> Iterator[Tuple[int, str]]:
        return enumerate(self.text.split('\n'), 1)

    def find(self, pattern, text=None) -> Iterator[Tuple[int, str]]:
        """(line, match) of a pattern in the code, or in the given text of the same layout."""
        for found in re.finditer(pattern, self.code if text is None else text):
            yield self.line_of(found.start()), found.group(0)

    def functions(self) -> Iterator[Function]:
        """Functions with a body that are not inside of another function."""
        if self.is_python:
            yield from python_functions(self.text)
        elif self.is_script:
            yield from shell_functions(self.text)
        elif self.is_cpp:
            yield from cpp_functions(
                re.sub(r'^[ \t]*#.*$', lambda m: blank(m.group(0)), self.code, flags=re.M)
            )


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield Function(node.name, node.lineno, node.end_lineno - node.lineno + 1)


def shell_functions(text):
    for found in re.finditer(r'^(\w[\w-]*)\(\) *\{.*?^\}', text, re.M | re.S):
        yield Function(
            found.group(1), text.count('\n', 0, found.start()) + 1, found.group(0).count('\n') + 1
        )


def cpp_functions(code):
    """Walks the braces: scopes are entered, bodies are measured from their declaration on."""
    depth = start = 0  # of braces inside of a body; of the declaration at hand
    for found in re.finditer(r'[{};]', code):
        mark, at = found.group(0), found.start()
        if depth:
            depth += {'{': 1, '}': -1, ';': 0}[mark]
            rest = code[at + 1 : at + 200].lstrip()
            if depth or rest.startswith(
                (',', '{')
            ):  # an initialiser `: a_{1}, b_{2} {` is not the end
                continue
            name = function_name(declaration)
            if name:
                line = code.count('\n', 0, start) + 1
                yield Function(name, line, code.count('\n', 0, at) + 2 - line)
        elif mark == '{':
            start += ACCESS.match(code[start:at]).end()
            declaration = code[start:at]
            if not SCOPE.match(declaration):
                depth = 1
                continue
        start = at + 1


def function_name(declaration):
    """The name, or '' for an initialiser (`kTable[] = {`)."""
    name = re.search(r'(operator\W+|[\w~:]+)\s*\(', declaration)
    rest = declaration
    while '(' in rest and rest != (shorter := re.sub(r'\([^()]*\)', '', rest)):
        rest = shorter
    is_function = (
        name
        and '(' not in rest
        and not re.search(r'(?<![=!<>])=(?!=)', re.sub(r'operator\W+', '', rest))
    )
    return name.group(1).strip() if is_function else ''


class Problem(NamedTuple):
    path: str
    line: int
    text: str

    def __str__(self):
        return f'{self.path}:{self.line}: {self.text}'


class Rule(NamedTuple):
    """A rule on one file, with samples it must catch and samples it must let pass."""

    name: str
    check: Callable[[Source], Iterator[Problem]]
    bad: List[Tuple[str, str]]
    good: List[Tuple[str, str]]
