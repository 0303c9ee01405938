#!/usr/bin/env bash
# The main job, on a machine without a GPU: installs what is missing, builds, fuzzes the CPU kernel against the float64
# reference, then predicts what an attention layer of a real model costs on a real GPU.
set -euo pipefail
cd "$(dirname "$0")"
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}

tools/setup.sh run
echo "==> Building preset release in build/release"
cmake --preset release
cmake --build --preset release --target attest
attest=build/release/bin/attest
mkdir -p out

echo
echo "==> Fuzzing the CPU kernel against the float64 reference for 30 s"
(set -x && "$attest" fuzz --kernel cpu --time 30s --json out/fuzz.json)

echo
echo "==> Predicting the attention layer of Llama 3 70B, 8192 tokens, on an H100"
(set -x && "$attest" predict --model llama-3-70b --seqlen 8192 --device h100 --json out/predict.json)

cat << END

Wrote
  out/fuzz.json     what the fuzzer tried and found
  out/predict.json  the prediction, every field
Next
  $attest check --seqlen-q 1 --seqlen-k 4096 --nheads 8 --nheads-k 1 --causal   one case, judged element by element
  $attest mutants                                                               the bugs the fuzzer must catch
  $attest predict --model mistral-7b --seqlen 32768 --device rtx4090            another model, another GPU
  $attest --help
END
