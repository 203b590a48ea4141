#!/usr/bin/env bash
# N hosts on one machine: a network and UTS namespace each, joined by a bridge.
#
#   netns-cluster.sh up N                    hosts node1..nodeN, and hub, which has the bridge
#   netns-cluster.sh down                    ends what runs in them, by pid, and removes them
#   netns-cluster.sh exec HOST COMMAND…      runs it there, with its own name and /etc/hosts
#   netns-cluster.sh ip HOST                 prints the IPv4 address
#   netns-cluster.sh unplug HOST | plug HOST the cable: peers see silence, no reset
#   netns-cluster.sh partition A[,B…] C[,…]  drops frames between the two groups, both ways
#   netns-cluster.sh heal                    every cable in, nothing dropped
#
# Needs root. The machine's own network is not touched and no host has a route out. State below
# TESTBED_STATE (./.testbed); NETNS_PREFIX tells clusters apart that run at once.
set -euo pipefail
# shellcheck source=SCRIPTDIR/daemons.sh
source "$(dirname "${BASH_SOURCE[0]}")/daemons.sh"

S=$(state_folder netns)
PREFIX=${NETNS_PREFIX:-tb}
[ ! -s "$S/prefix" ] || PREFIX=$(cat "$S/prefix")
NET=${NETNS_NET:-10.77.0}
HUB=${PREFIX}hub

namespace() { echo "$PREFIX${1#node}"; }
address() { if [ "$1" = hub ]; then echo "$NET.254"; else echo "$NET.${1#node}"; fi; }
cable() { echo "p${1#node}"; }  # the host's port on the bridge
nodes() { seq -f 'node%g' "$(cat "$S/nodes")"; }
in_hub() { ip netns exec "$HUB" "$@"; }

up() {
  local host
  [ "$(id -u)" = 0 ] || fail "needs root"
  need ip nft unshare nsenter
  if ip netns list | grep -qw "$HUB"; then fail "already up, or of another run: down first"; fi
  echo "$1" > "$S/nodes"
  echo "$PREFIX" > "$S/prefix"
  mkdir -p "$S/hold"
  {
    echo "127.0.0.1 localhost"
    for host in hub $(nodes); do echo "$(address "$host") $host"; done
  } > "$S/hosts"
  ip netns add "$HUB"
  ip -n "$HUB" link set lo up
  ip -n "$HUB" link add br0 type bridge
  ip -n "$HUB" addr add "$(address hub)/24" dev br0
  ip -n "$HUB" link set br0 up
  for host in $(nodes); do add_node "$host"; done
  forget_faults
  echo "netns: $1 node(s)"
}

add_node() {
  local name; name=$(namespace "$1")
  ip netns add "$name"
  ip -n "$name" link set lo up
  ip link add eth0 netns "$name" type veth peer name "$(cable "$1")" netns "$HUB"
  in_hub ip link set "$(cable "$1")" master br0 up
  ip -n "$name" addr add "$(address "$1")/24" dev eth0
  ip -n "$name" link set eth0 up
}

forget_faults() {  # one table of the bridge sees every frame between the hosts
  in_hub nft -f - << 'RULES'
table bridge faults
delete table bridge faults
table bridge faults {
  chain forward { type filter hook forward priority 0; policy accept; }
  chain input   { type filter hook input priority 0; policy accept; }
  chain output  { type filter hook output priority 0; policy accept; }
}
RULES
}

down() {
  local host
  [ -s "$S/nodes" ] || return 0
  for host in $(nodes) hub; do remove "$(namespace "$host")"; done
  rm -rf "${S:?}"
  echo "netns: down"
}

remove() {
  ip netns list | awk '{print $1}' | grep -qx "$1" || return 0
  signal_all "$1" TERM
  poll 3 is_empty "$1" || signal_all "$1" KILL
  ip netns del "$1"
}

signal_all() {
  local pid
  for pid in $(ip netns pids "$1"); do kill "-$2" "$pid" 2> /dev/null || true; done
}

is_empty() { [ -z "$(ip netns pids "$1")" ]; }

# Not `ip netns exec`: its fresh /sys hides the cgroup tree, without which slurmd does not start.
# shellcheck disable=SC2016  # the inner shell expands
ENTER='
  name=$1 hosts=$2 hold=$3; shift 3
  hostname "$name"
  mount --bind "$hosts" /etc/hosts
  mount --rbind /sys/fs/cgroup "$hold" && mount -t sysfs sysfs /sys &&
    mount --rbind "$hold" /sys/fs/cgroup && umount -l "$hold"
  exec "$@"'

on_host() {
  local host=$1; shift
  exec nsenter --net="/run/netns/$(namespace "$host")" -- \
    unshare --uts --mount -- sh -c "$ENTER" sh "$host" "$S/hosts" "$S/hold" "$@"
}

drop() {  # frames from $1 to $2
  local rule=(nft add rule bridge faults)
  if [ "$1" = hub ]; then
    in_hub "${rule[@]}" output oifname "$(cable "$2")" counter drop
  elif [ "$2" = hub ]; then
    in_hub "${rule[@]}" input iifname "$(cable "$1")" counter drop
  else
    in_hub "${rule[@]}" forward iifname "$(cable "$1")" oifname "$(cable "$2")" counter drop
  fi
}

partition() {
  local one other
  for one in ${1//,/ }; do
    for other in ${2//,/ }; do drop "$one" "$other"; drop "$other" "$one"; done
  done
}

heal() {
  local host
  forget_faults
  for host in $(nodes); do in_hub ip link set "$(cable "$host")" up; done
}

[ $# -gt 0 ] || usage
command=$1; shift
case "$command" in
  up) up "${1:?number of nodes}" ;;
  down | heal) "$command" ;;
  exec) on_host "$@" ;;
  ip) address "$1" ;;
  unplug) in_hub ip link set "$(cable "$1")" down ;;
  plug) in_hub ip link set "$(cable "$1")" up ;;
  partition) partition "$1" "$2" ;;
  *) usage ;;
esac
