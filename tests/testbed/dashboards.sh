#!/usr/bin/env bash
# Checks Grafana dashboards without a Grafana server.
#
#   dashboards.sh up              installs Grafana's own types below the state folder, once (PyPI)
#   dashboards.sh check FILE…     against those types, and house rules (see grafana/check.py)
#
# The queries themselves are checked by monitoring.sh check-dashboard. State below TESTBED_STATE.
set -euo pipefail
# shellcheck source=SCRIPTDIR/daemons.sh
source "$(dirname "${BASH_SOURCE[0]}")/daemons.sh"

S=$(state_folder grafana)
TYPES=grafana-foundation-sdk==1769699241

up() {
  [ "$(cat "$S/ready" 2> /dev/null)" != "$TYPES" ] || return 0
  need python3
  rm -rf "${S:?}"
  mkdir -p "$S"
  python3 -m venv "$S/venv"
  "$S/venv/bin/pip" install -q "$TYPES"
  echo "$TYPES" > "$S/ready"
}

[ $# -gt 0 ] || usage
command=$1; shift
case "$command" in
  up) up ;;
  check)
    [ -e "$S/ready" ] || fail "run up first"
    exec "$S/venv/bin/python" -I "$TESTBED/grafana/check.py" "$@" ;;
  *) usage ;;
esac
