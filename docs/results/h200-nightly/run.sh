cd build/cuda/bin; export PATH=$PATH:/usr/local/cuda/bin LD_LIBRARY_PATH=$PWD
R=/tmp/nights; mkdir -p $R
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader; which ncu compute-sanitizer
run() { local name=$1; shift; local a=$SECONDS; "$@" > $OUT/$name.txt 2> $OUT/$name.err; echo "$name exit $? in $((SECONDS - a)) s"; }
P=./planted_attest
run night1 timeout 230 $P nightly --out $R --time ${T1:-150s} --seed 20261121 --tests $PWD --threads 12
cp $R/index.html $OUT/night1.html; cp $R/junit.xml $OUT/night1.xml; cp $R/nightly.json $OUT/night1.json
export ATTEST_PLANT=sm80:bug,slow
run night2 timeout 200 $P nightly --out $R --time ${T2:-80s} --seed 20261122 --tests $PWD --threads 12 --kernel sm80 --kernel unfused --steps doctor,corpus,time,fuzz
cp $R/index.html $OUT/night2.html; cp $R/junit.xml $OUT/night2.xml; cp $R/nightly.json $OUT/night2.json
line=$(python3 -c 'import json;print(next(r["repro"] for r in json.load(open("'$OUT'/night2.json"))["red"] if r["check"].startswith("fuzz/sm80")))')
echo "$line"; (set -- $line; shift; run repro_planted timeout 60 $P "$@"; unset ATTEST_PLANT; run repro_right timeout 60 $P "$@")
unset ATTEST_PLANT
run night3 timeout 60 $P nightly --out $R --time 30s --seed 20261123 --threads 12 --kernel sm80 --kernel unfused --steps corpus,time
sqlite3 -version 2>/dev/null | head -1
gzip -c $R/history.sqlite > $OUT/history.sqlite.gz; ls -la $R; tail -5 $OUT/*.err
