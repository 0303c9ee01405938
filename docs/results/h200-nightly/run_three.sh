# b.sh: a night of TIME, one with a plant, one without
mkdir -p /tmp/last; [ -d /tmp/last/bin ] || tar -C /tmp/last -xJf .hw/last/pack.tar.xz; H=/tmp/last; export PATH=$PATH:/usr/local/cuda/bin LD_LIBRARY_PATH=$H/bin; S=$SECONDS
N=/tmp/nights; mkdir -p $N /tmp/b
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
run() { local name=$1; shift; local a=$SECONDS; timeout ${LIMIT:-500} "$@" > /tmp/b/$name.txt 2> /tmp/b/$name.err; echo "$name exit $? in $((SECONDS - a)) s (at $((SECONDS - S)))"; }
P=$H/bin/planted_attest
keep() { cp $N/index.html /tmp/b/$1.html; cp $N/junit.xml /tmp/b/$1.xml; cp $N/nightly.json /tmp/b/$1.json; }
run night7 $P nightly --out $N --time ${T:-6m} --seed 20261127 --threads 14 --tests $H/bin --kernel sm80 --kernel unfused --kernel cpu --kernel $H/examples/libexample_cuda.so; keep night7; cat /tmp/b/night7.txt; tail -2 /tmp/b/night7.err
export ATTEST_PLANT=sm80:bug,slow
run night8 $P nightly --out $N --time 50s --seed 20261128 --threads 14 --kernel sm80 --kernel unfused --steps doctor,corpus,time,fuzz; keep night8; cat /tmp/b/night8.txt
line=$(python3 -c 'import json;print(next(r["repro"] for r in json.load(open("/tmp/b/night8.json"))["red"] if r["check"].startswith("fuzz/sm80")))')
echo "$line"; (set -- $line; shift; run repro_planted $P "$@"; unset ATTEST_PLANT; run repro_right $P "$@")
line=$(python3 -c 'import json;print(next(r["repro"] for r in json.load(open("/tmp/b/night8.json"))["red"] if r["check"].startswith("time/sm80")))')
echo "$line"; (set -- $line; shift; run time_planted $P "$@"; cat /tmp/b/time_planted.txt; unset ATTEST_PLANT; run time_right $P "$@"; cat /tmp/b/time_right.txt)
unset ATTEST_PLANT
run night9 $P nightly --out $N --time 25s --seed 20261129 --threads 14 --kernel sm80 --kernel unfused --steps corpus,time; keep night9; cat /tmp/b/night9.txt
cp $N/history.sqlite /tmp/b/; ls -la $N
tar -C /tmp/b -czf $OUT/b.tar.gz .; echo "$((SECONDS - S)) s in all"
