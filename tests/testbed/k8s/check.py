"""Strict offline validation of Kubernetes manifests.

    check.py --defs DEFINITIONS.json FILE.yaml ..      ('-' reads standard input)

Kinds are checked against Kubernetes' own OpenAPI definitions (DEFINITIONS.json, put there by
k8s-tools.sh up): an unknown field, a wrong type, a null, a missing required field and a value
outside its format, pattern or limits is a problem, and so is a key given twice or an unknown kind.
Not checked: what only an API server does (CEL rules, defaulting, admission, references), and the
allowed words of string fields, which the definitions do not list.
"""

import argparse
import base64
import datetime
import json
import re
import sys

import jsonschema
import yaml

TAG = 'tag:yaml.org,2002:'
INT_OR_STRING = {'anyOf': [{'type': 'integer'}, {'type': 'string'}]}
QUANTITY = {
    'anyOf': [
        {'type': 'number'},
        {
            'type': 'string',
            'pattern': r'^[-+]?(\d+(\.\d*)?|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?\d+)?\Z',
        },
    ]
}


class Loader(yaml.CSafeLoader):
    """YAML as kubectl reads it: no dates, no base 60; a key given twice is an error."""

    def construct_mapping(self, node, deep=False):
        keys = [k.value for k, _ in node.value if k.tag != TAG + 'merge']
        for k in keys:
            if keys.count(k) > 1:
                raise yaml.constructor.ConstructorError(
                    None, None, f'key {k!r} is given twice', node.start_mark
                )
        return {
            k if isinstance(k, str) else json.dumps(k): v
            for k, v in super().construct_mapping(node, deep).items()
        }


Loader.yaml_implicit_resolvers = {
    c: [r for r in rs if r[0] in (TAG + 'bool', TAG + 'null', TAG + 'merge')]
    for c, rs in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(
    TAG + 'int',
    re.compile(r'[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]*|[1-9][0-9_]*)$'),
    list('-+0123456789'),
)
Loader.add_implicit_resolver(
    TAG + 'float',
    re.compile(
        r'[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$'
        r'|[-+]?\.(inf|Inf|INF)$|\.(nan|NaN|NAN)$'
    ),
    list('-+.0123456789'),
)

formats = jsonschema.FormatChecker()
for bits in (32, 64):
    formats.checks(f'int{bits}')(
        lambda v, b=bits: not isinstance(v, int) or -(2 ** (b - 1)) <= v < 2 ** (b - 1)
    )
formats.checks('byte', ValueError)(
    lambda v: not isinstance(v, str)
    or base64.b64decode(re.sub(r'[\r\n]', '', v), validate=True) is not None
)
formats.checks('date-time', ValueError)(
    lambda v: not isinstance(v, str)
    or re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[-+]\d\d:\d\d)', v)
    and datetime.datetime.fromisoformat(re.sub(r'\.\d+', '', v)) is not None
)


def strict(s):
    """An OpenAPI schema as JSON Schema that refuses null and (unless preserved) unknown fields."""
    out = dict(s)
    if isinstance(s.get('type'), list):
        out['type'] = [t for t in s['type'] if t != 'null']
    if s.get('x-kubernetes-int-or-string'):
        out.pop('type', None)
        out['anyOf'] = INT_OR_STRING['anyOf']
    if 'properties' in s:
        out['properties'] = {k: strict(v) for k, v in s['properties'].items()}
        if not s.get('x-kubernetes-preserve-unknown-fields'):
            out.setdefault('additionalProperties', False)
    for k in ('items', 'additionalProperties'):
        if isinstance(s.get(k), dict):
            out[k] = strict(s[k])
    return out


def load(name):
    with sys.stdin if name == '-' else open(name, encoding='utf-8') as f:
        return [d for d in yaml.load_all(f.read(), Loader) if d is not None]


def read_definitions(name):
    """(all definitions, {(apiVersion, kind): schema}) of Kubernetes' built-in kinds."""
    with open(name, encoding='utf-8') as f:
        raw = json.load(f)['$defs']
    defs = {name: strict(s) for name, s in raw.items()}
    defs['io.k8s.apimachinery.pkg.api.resource.Quantity'] = QUANTITY
    defs['io.k8s.apimachinery.pkg.util.intstr.IntOrString'] = INT_OR_STRING
    kinds = {
        (f"{g['group']}/{g['version']}".lstrip('/'), g['kind']): {'$ref': f'#/$defs/{name}'}
        for name, s in raw.items()
        for g in s.get('x-kubernetes-group-version-kind', [])
    }
    return defs, kinds


def problems_of(where, d, defs, kinds):
    """Problems of one object of a file."""
    if not isinstance(d, dict) or not d.get('apiVersion') or not d.get('kind'):
        return [f'{where}: apiVersion or kind is missing']
    meta = d.get('metadata')
    where += f" {d['kind']}/{meta.get('name', '?') if isinstance(meta, dict) else '?'}"
    schema = kinds.get((str(d['apiVersion']), str(d['kind'])))
    if schema is None:
        return [f"{where}: no schema for {d['apiVersion']} {d['kind']}"]
    validator = jsonschema.Draft4Validator({**schema, '$defs': defs}, format_checker=formats)
    return [f'{where}: {e.json_path} {e.message[:300]}' for e in validator.iter_errors(d)]


def main():
    ap = argparse.ArgumentParser(usage='check.py --defs DEFINITIONS.json FILE.yaml ..')
    ap.add_argument('--defs', required=True)
    ap.add_argument('files', nargs='+')
    args = ap.parse_args()
    defs, kinds = read_definitions(args.defs)
    problems, count = [], 0
    for name in args.files:
        try:
            docs = load(name)
        except (OSError, UnicodeError, yaml.YAMLError) as e:
            problems.append(f'{name}: {" ".join(str(e).split())}')
            continue
        count += len(docs)
        if not docs:
            problems.append(f'{name}: no object in it')
        for i, d in enumerate(docs):
            problems += problems_of(f'{name}#{i}', d, defs, kinds)
    for p in problems:
        print(p)
    print(f'{count} object(s), {len(problems)} problem(s)')
    return 1 if problems else 0


sys.exit(main())
