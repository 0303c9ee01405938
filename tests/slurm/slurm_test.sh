#!/usr/bin/env bash
# slurm_test.sh ATTEST: tools/slurm on a cluster of this host alone, with daemons, keys and folders of its own. A shard is
# killed in the middle and requeued: nothing is lost, nothing is counted twice, and the merge says what one process says.
set -euo pipefail
attest=$(realpath "$1")
tools=$(cd "$(dirname "$0")/../../tools/slurm" && pwd)
for program in munged slurmctld slurmd sbatch; do
  command -v "$program" > /dev/null || PATH=$PATH:/usr/sbin command -v "$program" > /dev/null ||
    { echo "slurm_test: no $program; Debian's packages are slurm-wlm and munge" >&2; exit 77; }
done
export PATH=$PATH:/usr/sbin
((EUID == 0)) || { echo "slurm_test: slurmd needs root to start jobs" >&2; exit 77; }

dir=$(mktemp -d /tmp/attest_slurm.XXXXXX)
chmod 755 "$dir"
pids=()
finish() {
  local status=$?
  scancel --user=root > /dev/null 2>&1 || true
  ((${#pids[@]} == 0)) || kill "${pids[@]}" 2> /dev/null || true
  wait
  if ((status != 0)); then tail -n 20 "$dir"/*.log "$dir"/out/*.log 2> /dev/null || true; fi
  rm -rf "$dir"
}
trap finish EXIT
fail() { echo "slurm_test: $1" >&2; exit 1; }
until_true() { # SECONDS COMMAND...: false where it does not come true
  local deadline=$((SECONDS + $1))
  shift
  until "$@" > /dev/null 2>&1; do
    ((SECONDS < deadline)) || return 1
    sleep 0.2
  done
}

echo "==> A cluster of $(hostname -s)"
mkdir -p "$dir"/{state,spool,munge}
chmod 700 "$dir/munge"
dd if=/dev/urandom of="$dir/munge/key" bs=128 count=1 status=none
chmod 400 "$dir/munge/key"
munged --force --foreground --key-file="$dir/munge/key" --socket="$dir/munge.socket" --pid-file="$dir/munge/pid" \
  --log-file="$dir/munge/log" --seed-file="$dir/munge/seed" > "$dir/munged.log" 2>&1 &
pids+=($!)
until_true 10 test -S "$dir/munge.socket" || fail "munged does not start"
port=$((20000 + $$ % 20000))
cat > "$dir/slurm.conf" << END
ClusterName=attest
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=2
SchedulerParameters=defer,sched_min_interval=100000,batch_sched_delay=0
NodeName=$(hostname -s) NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES OverSubscribe=FORCE:8
END
export SLURM_CONF=$dir/slurm.conf
slurmctld -D -i > "$dir/slurmctld.log" 2>&1 &
pids+=($!)
slurmd -D > "$dir/slurmd.log" 2>&1 &
pids+=($!)
until_true 30 bash -c 'sinfo -h -o %T | grep -qE "idle|mixed|alloc"' || fail "no node comes up"

echo "==> Four shards, one killed in the middle"
out=$dir/out
read -r array merge <<< "$("$tools/submit.sh" --out "$out" --shards 4 --time 60s --seed 7 --attest "$attest" \
  --sbatch --ntasks=1 -- --kernel cpu --threads 1)"
covered() { cases_of "$1" | grep -qE '[1-9]'; }
cases_of() { "$attest" merge "$out/shard-$1" --json - | python3 -c 'import json,sys; print(sum(c["cases"] for c in json.load(sys.stdin)["campaigns"]))'; }
until_true ${ATTEST_SLURM_PATIENCE:-60} covered 1 || fail "shard 1 covers nothing"
pid=$(pgrep -f "shard-1 --shard 1/4" | head -n 1) || true
[[ -n $pid ]] || { ps -ef | grep -a shard- | head; fail "shard 1 does not run"; }
kill -9 "$pid"
until_true 30 bash -c "scontrol show job ${array}_1 | grep -qE 'JobState=(FAILED|CANCELLED|NODE_FAIL|COMPLETED)'" || fail "shard 1 survives SIGKILL"
before=$(cases_of 1)
[[ -z $("$attest" merge "$out/shard-1" --json - | python3 -c 'import json,sys; print("" if json.load(sys.stdin)["unfinished"] else "finished")') ]] ||
  fail "shard 1 was through before it was killed"
scontrol requeue "${array}_1"
scontrol update "JobId=${array}_1" StartTime=now || true
scontrol update "JobId=$merge" "Dependency=afterany:$array" # it had ended once, which is all that `afterany` waits for
until_true 120 bash -c "grep -q 'goes on with the night' '$out/shard-1.log'" || fail "shard 1 does not go on"
echo "    shard 1 was killed after $before cases and goes on"

echo "==> The merge"
until_true 180 bash -c "scontrol show job $merge | grep -qE 'JobState=(COMPLETED|FAILED)'" || fail "the merge does not run"
[[ -s $out/merged.json ]] || fail "no merged.json"
cat "$out/merged.txt"
python3 - "$out/merged.json" "$before" "$attest" << 'END'
import json, subprocess, sys
merged = json.load(open(sys.argv[1]))
[campaign] = merged["campaigns"]
assert campaign["twice"] == 0, campaign
assert campaign["missing_shards"] == [] and merged["unfinished"] == [], merged
prefix = campaign["prefix"]
assert campaign["in_prefix"]["cases"] == prefix > int(sys.argv[2]) > 0, campaign
one = json.loads(subprocess.run([sys.argv[3], "fuzz", "--seed", "7", "--cases", str(prefix), "--json", "-"],
                                stdout=subprocess.PIPE, check=True).stdout)
for count in ("cases", "passed", "failed", "unsupported"):
    assert one[count] == campaign["in_prefix"][count], (count, one[count], campaign)
print(f"    {prefix} cases, each once, as one process counts them")
END
echo "slurm_test: passed"
