# run_long.sh FOLDER: one night of 7 minutes, then PyTorch's math backend through the Python door. FOLDER has bin, share and examples; what comes
# out is $OUT/night.tar.gz.
H=$(realpath "${1:?the folder of bin, share and examples}"); cd "$H" || exit 2; export PATH=$PATH:/usr/local/cuda/bin LD_LIBRARY_PATH=$H/bin
A=$H/bin/attest; N=/tmp/nights; mkdir -p $N; began=$SECONDS
nvidia-smi --query-gpu=name,driver_version,uuid --format=csv,noheader; uname -r; which ncu compute-sanitizer; $A --version
run() { local name=$1; shift; local a=$SECONDS; "$@" > /tmp/$name.txt 2> /tmp/$name.err; echo "$name exit $? in $((SECONDS - a)) s"; }
run night timeout 500 $A nightly --out $N --time ${T:-7m} --seed 20261122 --threads 14 --kernel sm80 --kernel unfused --kernel cpu --kernel $H/examples/libexample_cuda.so
tail -3 /tmp/night.err; cat /tmp/night.txt
run doctor timeout 60 $A doctor --kernel examples/torch_sdpa.py:math
run math timeout 60 $A fuzz --kernel examples/torch_sdpa.py:math --time 20s --threads 4
run bench timeout 30 $A bench --kernel examples/torch_sdpa.py:flash --nheads 16 --nheads-k 16 --seqlen-q 4096 --seqlen-k 4096 --headdim 128 --causal=top-left --dtype bf16
run bench80 timeout 30 $A bench --kernel sm80 --nheads 16 --nheads-k 16 --seqlen-q 4096 --seqlen-k 4096 --headdim 128 --causal=top-left --dtype bf16
cat /tmp/doctor.txt /tmp/math.txt /tmp/bench.txt /tmp/bench80.txt; cat /tmp/*.err | tail -5
ls -la $N; cp /tmp/*.txt /tmp/*.err $N/
tar -C $N -czf $OUT/night.tar.gz .; echo "$((SECONDS - began)) s in all"
