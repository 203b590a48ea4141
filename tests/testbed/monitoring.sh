#!/usr/bin/env bash
# A real Prometheus on the loopback, and checks that use it.
#
#   monitoring.sh up CONFIG HOST:PORT…   with this configuration and, as targets/*.json, targets
#   monitoring.sh down                   stops it, by pid
#   monitoring.sh query EXPRESSION       one line a series; fails on an error
#   monitoring.sh wait EXPRESSION [S]    until it has a series, at most S seconds (60)
#   monitoring.sh lint URL               promtool's lint of what an endpoint exposes
#   monitoring.sh check-dashboard FILE   runs every query of panels and variables: an error fails,
#                                        and so does a query without data
#
# Port: PROMETHEUS_PORT (19090). State below TESTBED_STATE (./.testbed).
set -euo pipefail
# shellcheck source=SCRIPTDIR/daemons.sh
source "$(dirname "${BASH_SOURCE[0]}")/daemons.sh"

S=$(state_folder monitoring)
PORT=${PROMETHEUS_PORT:-19090}
URL=http://127.0.0.1:$PORT

up() {
  local config=$1 target; shift
  need prometheus promtool curl jq
  ! curl -s -o /dev/null "$URL" || fail "another server answers at $URL"
  rm -rf "${S:?}"
  mkdir -p "$S/targets"
  cp "$config" "$S/prometheus.yml"
  for target in "$@"; do jq -n --arg t "$target" '$t'; done |
    jq -s '[{targets: ., labels: {job: "lrun-test"}}]' > "$S/targets/test.json"
  promtool check config "$S/prometheus.yml" > "$S/check.log" 2>&1 || fail "$(cat "$S/check.log")"
  setsid prometheus --config.file="$S/prometheus.yml" --storage.tsdb.path="$S/tsdb" \
    --web.listen-address="127.0.0.1:$PORT" > "$S/prometheus.log" 2>&1 < /dev/null &
  echo $! > "$S/prometheus.pid"
  poll 60 curl -fs -o /dev/null "$URL/-/ready" ||
    fail "prometheus did not start: $(tail -n 5 "$S/prometheus.log")"
  echo "monitoring: $URL"
}

down() {
  stop_pidfile "$S/prometheus.pid"
  rm -rf "${S:?}"
}

ask() { curl -sS -G "$URL/api/v1/query" --data-urlencode "query=$1"; }

query() {
  ask "$1" | jq -er 'if .status == "success"
    then .data.result[]? | "\(.metric) \(.value[1])"
    else error(.error) end'
}

has_data() { ask "$1" | jq -e '.data.result | length > 0' > /dev/null 2>&1; }

# TITLE <tab> EXPRESSION of each target (rows hold panels of their own) and each query variable.
# shellcheck disable=SC2016  # jq expands
QUERIES='
  (.. | objects | select(has("targets") and has("title")) | .title as $title
    | .targets[]? | select(.expr) | [$title, .expr]),
  (.templating.list[]? | select(.type == "query") | .name as $name
    | (.query | if type == "object" then .query else . end)
    | select(test("^label_values\\("))
    | ["variable " + $name, capture("label_values\\((?<e>.*),\\s*\\w+\\)").e])
  | @tsv'

# As Grafana fills in its macros and this dashboard's variables.
filled_in() {
  local file=$1 expression=$2 name
  expression=$(sed -E 's/\$\{?__(rate_)?interval\}?/30s/g' <<< "$expression")
  while read -r name; do
    expression=$(sed -E "s/\\\$\{$name(:[a-z]+)?\}|\\\$$name\\b/.*/g" <<< "$expression")
  done < <(jq -r '.templating.list[]?.name' "$file")
  # ="$var" matches nothing once the variable is .*; =~ is what a variable of several values needs.
  sed -E 's/([a-z_]+)="\.\*"/\1=~".*"/g' <<< "$expression"
}

check_dashboard() {
  local file=$1 title expression answer bad=0 count=0
  while IFS=$'\t' read -r title expression; do
    count=$((count + 1))
    answer=$(ask "$(filled_in "$file" "$expression")")
    if ! jq -e '.status == "success"' <<< "$answer" > /dev/null; then
      echo "ERROR  $title: $expression: $(jq -r .error <<< "$answer")"; bad=1
    elif ! jq -e '.data.result | length > 0' <<< "$answer" > /dev/null; then
      echo "EMPTY  $title: $expression"; bad=1
    else
      echo "ok     $title ($(jq '.data.result | length' <<< "$answer") series)"
    fi
  done < <(jq -r "$QUERIES" "$file")
  [ $count -gt 0 ] || fail "no query in $file"
  return $bad
}

[ $# -gt 0 ] || usage
command=$1; shift
case "$command" in
  up) up "$@" ;;
  down) down ;;
  query) query "$1" ;;
  wait) poll "${2:-60}" has_data "$1" || fail "no series: $1" ;;
  lint) curl -fsS "$1" | promtool check metrics ;;
  check-dashboard) check_dashboard "$1" ;;
  *) usage ;;
esac
