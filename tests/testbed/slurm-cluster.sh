#!/usr/bin/env bash
# A real Slurm (slurmctld, N slurmd, munged) on one machine.
#
#   slurm-cluster.sh up N              starts it; returns when node1..nodeN are idle
#   slurm-cluster.sh down              ends jobs and daemons, by pid
#   slurm-cluster.sh exec COMMAND…     runs it with SLURM_CONF set: srun, sbatch, scontrol
#
# With SLURM_ON_NETNS=1 node I runs on host nodeI of netns-cluster.sh, and `exec` on its hub;
# otherwise all daemons are on the loopback, node I at 127.0.1.I.
#
# Needs root. No systemd, no cgroups, nothing below /etc: configuration, key and sockets are of this
# cluster alone, below TESTBED_STATE (./.testbed). Ports: SLURM_PORT (16817) and the ones after it.
set -euo pipefail
# shellcheck source=SCRIPTDIR/daemons.sh
source "$(dirname "${BASH_SOURCE[0]}")/daemons.sh"

S=$(state_folder slurm)
export SLURM_CONF=$S/slurm.conf
PORT=${SLURM_PORT:-16817}
CPUS=4  # that each node claims; may exceed reality
SOCKET_PATH_MOST=80

is_on_netns() { [ -e "$S/on-netns" ]; }

on() {
  local host=$1; shift
  if is_on_netns; then "$TESTBED/netns-cluster.sh" exec "$host" "$@"; else "$@"; fi
}

node_address() {
  if is_on_netns; then "$TESTBED/netns-cluster.sh" ip "node$1"; else echo "127.0.1.$1"; fi
}

up() {
  local i
  [ "$(id -u)" = 0 ] || fail "needs root"
  need slurmctld slurmd munged srun
  if is_up "$S/run/slurmctld.pid"; then fail "already up: down first"; fi
  [ ${#S} -lt $SOCKET_PATH_MOST ] || fail "the state folder is too deep for a Unix socket: $S"
  rm -rf "${S:?}"
  mkdir -p "$S"/{state,spool,log,run,munge}
  chmod 755 "$S" "$S"/{spool,log,run}
  chmod 711 "$S/munge"
  [ -z "${SLURM_ON_NETNS:-}" ] || touch "$S/on-netns"
  echo "$1" > "$S/nodes"
  write_configuration "$1" > "$SLURM_CONF"
  start_munge
  on hub setsid slurmctld -c -f "$SLURM_CONF" >> "$S/log/slurmctld.out" 2>&1 < /dev/null ||
    fail "slurmctld did not start: $(tail -n 5 "$S/log/slurmctld.out" "$S/log/slurmctld.log")"
  for i in $(seq "$1"); do start_node "$i"; done
  poll 60 are_idle "$1" || { show_logs; fail "the nodes did not become idle"; }
  echo "slurm: $1 node(s) idle"
}

start_munge() {
  (umask 077; head -c 128 /dev/urandom > "$S/munge/key")
  munged --key-file="$S/munge/key" --socket="$S/munge/sock" --pid-file="$S/munge/pid" --force \
    --log-file="$S/munge/log" --seed-file="$S/munge/seed" --num-threads=2 2>> "$S/munge/err" ||
    fail "munged did not start: $(cat "$S/munge/err")"
}

start_node() {
  local name=node$1
  mkdir -p "$S/spool/$name"
  on "$name" env TESTBED_NODE="$S/$name" setsid slurmd -N "$name" -f "$SLURM_CONF" \
    >> "$S/log/$name.out" 2>&1 < /dev/null
}

are_idle() {
  local idle
  idle=$(on hub sinfo -h -N -o '%N %T' 2> /dev/null | grep -c ' idle$' || true)
  [ "$idle" -ge "$1" ]
}

write_configuration() {
  local i host address=127.0.0.1
  host=$(on hub hostname -s)
  if is_on_netns; then address=$("$TESTBED/netns-cluster.sh" ip hub); fi
  cat << CONF
ClusterName=testbed
SlurmctldHost=$host($address)
SlurmctldPort=$PORT
AuthInfo=socket=$S/munge/sock,cred_expire=5
StateSaveLocation=$S/state
SlurmdSpoolDir=$S/spool/%n
SlurmctldPidFile=$S/run/slurmctld.pid
SlurmdPidFile=$S/run/%n.pid
SlurmctldLogFile=$S/log/slurmctld.log
SlurmdLogFile=$S/log/%n.log
JobCompLoc=$S/log/jobcomp.txt
CONF
  cat "$TESTBED/slurm.conf"
  for i in $(seq "$1"); do
    if is_on_netns; then host=node$i; fi
    echo "NodeName=node$i NodeHostname=$host NodeAddr=$(node_address "$i") Port=$((PORT + i))" \
      "CPUs=$CPUS RealMemory=4000 State=UNKNOWN"
  done
  echo "PartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
}

down() {
  local file i
  [ -s "$S/nodes" ] || return 0
  if is_up "$S/run/slurmctld.pid"; then end_jobs; fi
  for file in "$S"/run/node*.pid; do stop_pidfile "$file"; done
  stop_pidfile "$S/run/slurmctld.pid"
  stop_pidfile "$S/munge/pid"
  for i in $(seq "$(cat "$S/nodes")"); do kill_rest "node$i"; done
  rm -rf "${S:?}"
  echo "slurm: down"
}

end_jobs() {
  on hub scancel -u root 2> /dev/null || true
  poll 10 has_no_job || on hub scancel --full -s KILL -u root 2> /dev/null || true
}

has_no_job() { [ -z "$(on hub squeue -h -t running,completing 2> /dev/null)" ]; }

# Step daemons, by our mark in their environment, and tasks, by Slurm's own, that outlived slurmd.
kill_rest() {
  local file pid
  for file in /proc/[0-9]*/environ; do
    if grep -qszxF "TESTBED_NODE=$S/$1" "$file" || is_task_of "$1" "$file"; then
      pid=${file#/proc/}
      kill -KILL "${pid%/environ}" 2> /dev/null || true
    fi
  done
}

is_task_of() {
  grep -qszxF "SLURMD_NODENAME=$1" "$2" && grep -qszxF "SLURM_CONF=$SLURM_CONF" "$2"
}

show_logs() { tail -n 15 "$S"/log/* >&2; on hub sinfo -N -l >&2 || true; }

[ $# -gt 0 ] || usage
command=$1; shift
case "$command" in
  up) up "${1:?number of nodes}" ;;
  down) down ;;
  exec) on hub "$@" ;;
  *) usage ;;
esac
