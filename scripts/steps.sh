# shellcheck shell=bash
# Sourced by the scripts of this folder: one step at a time, with visible progress, a log, and one
# clear line when it fails. Owns the wording of progress and errors; knows nothing of the steps.
#
#   stop TEXT                   one line on stderr, exit 1
#   run_step NAME LOG COMMAND…  runs it with its output in LOG; meanwhile shows time and last line
#   need_space PATH MIB WHAT    stops unless the file system of PATH has that much room
#   root_command                sets the array AS_ROOT: how to run a command as root, or returns 1
#   show_usage                  prints the comment at the top of the script, exit 0
#   usage_error TEXT            one line on stderr, exit 2

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
LOGS=$ROOT/build/logs
SCRIPT=scripts/$(basename "$0")
PROGRESS_SECONDS=15  # without a terminal: one line this often

say() { echo "$SCRIPT: $*"; }
stop() { echo "$SCRIPT: $*" >&2; exit 1; }
usage_error() { echo "$SCRIPT: $*" >&2; exit 2; }
show_usage() { sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "$0"; exit 0; }

run_step() {
  local name=$1 log=$2; shift 2
  mkdir -p "$(dirname "$log")"
  local start=$SECONDS shown=$SECONDS code=0 pid
  [ -t 1 ] || say "$name …"
  "$@" > "$log" 2>&1 < /dev/null &
  pid=$!
  # A background job of a script ignores Ctrl-C by itself.
  # shellcheck disable=SC2064  # this very pid
  trap "kill $pid 2> /dev/null; exit 130" INT TERM HUP
  while kill -0 "$pid" 2> /dev/null; do
    sleep 0.5
    if [ -t 1 ]; then
      printf '\r\033[K%s: %s (%d s) %.50s' \
        "$SCRIPT" "$name" $((SECONDS - start)) "$(last_line "$log")"
    elif [ $((SECONDS - shown)) -ge $PROGRESS_SECONDS ]; then
      say "$name: $((SECONDS - start)) s, $(last_line "$log")"
      shown=$SECONDS
    fi
  done
  wait "$pid" || code=$?
  trap - INT TERM HUP
  [ ! -t 1 ] || printf '\r\033[K'
  [ "$code" != 0 ] || say "$name: done in $((SECONDS - start)) s"
  return "$code"
}

last_line() { tail -c 8000 "$1" | tr '\r' '\n' | grep -v '^ *$' | tail -n 1 | cut -c 1-100; }

need_space() {
  local path=$1 mib=$2 what=$3 free
  while [ ! -e "$path" ]; do path=$(dirname "$path"); done
  free=$(df -Pm "$path" | awk 'NR == 2 {print $4}')
  [ "$free" -ge "$mib" ] ||
    stop "disk full: $what needs $mib MiB on the file system of $path, which has $free MiB free"
}

LOST_PACKAGE='Unable to locate package [^ ]+|No matching distribution found for .*'
LOST_PACKAGE+='|[^ ]+. has no installation candidate.*'
NO_SPACE='No space left on device|enough free space'
NO_NETWORK='Temporary failure resolving|Could not resolve|name resolution|Network is unreachable'
NO_NETWORK+='|NewConnectionError|Failed to establish a new connection|Could not connect'
NO_NETWORK+='|Connection timed out|ConnectTimeout|Max retries exceeded'

# The first cause in the log of a package installer, as one line; nothing if none is known.
first_cause() {
  local log=$1 lost
  lost=$(grep -oE "$LOST_PACKAGE" "$log" | head -n 1)
  if grep -qE "$NO_SPACE" "$log"; then
    echo "disk full while installing (df -h shows where)"
  elif grep -qE "$NO_NETWORK" "$log"; then
    echo "no network: the package server cannot be reached" \
      "(behind a proxy: set https_proxy; with a mirror of PyPI: set PIP_INDEX_URL)"
  elif [ -n "$lost" ]; then
    echo "missing package: $lost (lrun is built on Debian 12 with its section main)"
  fi
}

root_command() {
  AS_ROOT=()
  [ "$(id -u)" != 0 ] || return 0
  if command -v sudo > /dev/null && { sudo -n true 2> /dev/null || [ -t 0 ]; }; then
    AS_ROOT=(sudo)
    return 0
  fi
  return 1
}

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2> /dev/null)" = installed ]; }

# install_packages WHAT MIB PACKAGE…: those that are missing; without root prints the command,
# returns 1.
install_packages() {
  local what=$1 mib=$2 missing=() package log=$LOGS/apt.log; shift 2
  for package in "$@"; do is_installed "$package" || missing+=("$package"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  if ! command -v apt-get > /dev/null; then
    say "$what: not Debian; install what these Debian packages hold: ${missing[*]}" >&2
    return 1
  fi
  if ! root_command; then
    say "$what: packages are missing; an administrator must run:" >&2
    echo "    apt-get update && apt-get install -y --no-install-recommends ${missing[*]}" >&2
    return 1
  fi
  need_space /usr "$mib" "$what"
  need_space /var/cache/apt/archives "$((mib / 3))" "$what"
  [ ${#AS_ROOT[@]} = 0 ] || sudo true  # the password, before the output goes to a log
  local apt=("${AS_ROOT[@]}" env DEBIAN_FRONTEND=noninteractive
    apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=2)
  run_step "package lists" "$log" "${apt[@]}" update || true  # what matters is the next command
  run_step "$what: ${#missing[@]} Debian packages" "$log.install" \
    "${apt[@]}" install -y --no-install-recommends "${missing[@]}" && return 0
  cat "$log.install" >> "$log"
  stop "$what: $(cause_or_log "$log")"
}

cause_or_log() {
  local cause; cause=$(first_cause "$1")
  echo "${cause:-failed, the log is $1; its end: $(last_line "$1")}"
}
