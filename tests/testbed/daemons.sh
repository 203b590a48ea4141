# shellcheck shell=bash
# Sourced by the testbed's scripts: daemons that are started and ended by pid, never by name.
#
#   fail TEXT             one line on stderr, exit 1
#   need PROGRAM…         fails unless all are installed
#   is_running PID        alive, and no zombie that some slow init has yet to reap
#   is_up PIDFILE         its process runs
#   stop_pidfile PIDFILE  TERM, up to 10 s, then KILL
#   poll SECONDS COMMAND… until it succeeds; 1 when the time is over

# shellcheck disable=SC2034  # for those who source this
TESTBED=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
STATE=${TESTBED_STATE:-$PWD/.testbed}

fail() { echo "$(basename "$0" .sh): $*" >&2; exit 1; }

need() {
  local program
  for program in "$@"; do
    command -v "$program" > /dev/null ||
      fail "$program is missing: scripts/test cluster installs it"
  done
}

is_running() { kill -0 "$1" 2> /dev/null && ! grep -qs '^State:.*Z' "/proc/$1/status"; }
is_up() { [ -s "$1" ] && is_running "$(cat "$1")"; }

stop_pidfile() {
  local pid
  [ -s "$1" ] || return 0
  pid=$(cat "$1")
  if kill -TERM "$pid" 2> /dev/null; then
    for _ in $(seq 100); do
      is_running "$pid" || break
      sleep 0.1
    done
    kill -KILL "$pid" 2> /dev/null || true
  fi
  rm -f "$1"
}

poll() {
  local end=$((SECONDS + $1)); shift
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.2
  done
}

# A folder for this script's state below $STATE, as an absolute path.
state_folder() {
  mkdir -p "$STATE/$1"
  (cd "$STATE/$1" && pwd)
}

# The comment at the top of the script, exit 2.
usage() { sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2; }
