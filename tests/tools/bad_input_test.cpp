// What a user can get wrong: each row ends with its exit status and one line that names field, value and limit, and
// leaves nothing behind.
#include "bad_input.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace attest::tools {
namespace {

const std::string models =
    "bert-base, bert-large, deepseek-v3, falcon-7b, gemma-2-9b, gemma-2-9b-window, gpt-oss-120b, gpt-oss-120b-window, "
    "gpt-oss-20b, gpt-oss-20b-window, llama-3-70b, llama-3-8b, mistral-7b, phi-3-mini, qwen-2.5-72b, qwen-2.5-7b, "
    "vit-b-16, vit-h-14, vit-l-16";

const BadInput bad_inputs[] = {
    // the command line itself
    {{},
     2,
     "command: '' is none of check, fuzz, predict, tune, measure, calibrate, reference, mutants, kernels, devices, "
     "plans, models, "
     "doctor, audit, bench, nightly, merge, report"},
    {{"predcit"}, 2, "command: 'predcit' is no command; did you mean predict?; see attest --help"},
    {{"experiment"}, 2, "command: 'experiment' is no command; see attest --help"},
    {{"--jsn", "-"}, 2, "command line: '--jsn' is no flag that stands before a command; see attest --help"},
    {{"predict", "--csv", "x.csv"}, 2, "csv: 'x.csv' goes with --sweep"},
    {{"predict", "--sweep", "seqlen=1..4", "--trace", "x.json"}, 2, "trace: 'x.json' goes without --sweep"},
    {{"predict", "--sweep", "num_splits=1,2", "--auto-splits"}, 2, "auto_splits: --auto-splits goes without --sweep"},
    {{"predict", "--sweep", "seqlen=1..4", "--sensitivity"}, 2, "sensitivity: --sensitivity goes without --sweep"},
    {{"predict", "--sensitivity=2"}, 2, "sensitivity: '2' is a value, and --sensitivity takes none"},
    {{"predict", "--sweep", "seqlen=4..1"}, 2, "sweep: 'seqlen=4..1' ends below where it begins"},
    {{"predict", "--sweep", "seed=0..1000"}, 2, "sweep: 'seed=0..1000' has more than 1000 points"},
    {{"predict", "--sweep", "headdim=64,300"}, 2, "headdim: 300 is outside 1 to 256"},
    {{"predict", "--sweep", "swizzled=true,maybe"}, 2, "swizzled: \"maybe\" must be true or false (in --sweep)"},
    {{"predict", "--sweep", "copy_kind=dma"},
     2,
     "copy_kind: \"dma\" must be one of cp_async, synchronous, tma (in --sweep)"},
    {{"predict", "--sweep", "l2_ways=0,16"}, 2, "l2_ways.value: 0 is outside 1 to 32 (in --sweep)"},
    {{"predict", "--sweep", "device=h100,h101"},
     2,
     "device: 'h101' is none of a100, ascend910b, b200, h100, h200, mtt-s4000, orin-agx, rtx3090, rtx4090, nor a .json "
     "file"},
    {{"predict", "--sweep", "plan=fa2,fa4", "--seqlen-q", "8"},
     2,
     "plan: 'fa4' is none of attest, fa2, fa3, cudnn, sm80-no-swizzle, sm80-sync-copies, sm80-no-skip, sm80-spill; did "
     "you mean fa2?"},
    {{"predict", "--sweep", "softcap=4.5..1"}, 2, "sweep: 'softcap=4.5..1' ends below where it begins"},
    {{"predict", "--sweep", "dtype=\xff"}, 2, "sweep: \"dtype=\xEF\xBF\xBD\" is not printable UTF-8"},
    {{"predict", "--set", "num_warps=3"},
     2,
     "num_warps: 3 does not divide tile_m = 128 into multiples of 16 rows (in --set)"},
    {{"measure", "--out", "x.csv"}, 2, "out: 'x.csv' goes with --panel"},
    {{"measure", "--from", "x.csv"}, 2, "from: 'x.csv' goes with --panel"},
    {{"measure", "--kernel", "cpu"}, 2, "kernel: 'cpu' runs on no GPU, whose counters are read"},
    {{"measure", "--via", "perf"}, 2, "via: 'perf' is none of cupti, ncu"},
    {{"measure", "--kernel", "cpu", "--via", "perf"}, 2, "via: 'perf' is none of cupti, ncu"},
    {{"measure", "--panel", "--device", "h20"},
     2,
     "device: 'h20' is none of a100, ascend910b, b200, h100, h200, mtt-s4000, orin-agx, rtx3090, rtx4090; did you mean "
     "h200?"},
    {{"measure", "--panel", "--batch", "2"}, 2, "panel: --batch goes without --panel, whose cases are fixed"},
    {{"measure", "--panel", "--kernel", "sm80"}, 2, "panel: --kernel goes without --panel, whose kernels are fixed"},
    {{"measure", "--panel", "--from", "none.csv"}, 2, "from: 'none.csv' does not exist"},
    {{"measure", "--panel", "--from", "none.csv", "--via", "ncu"},
     2,
     "from: --via goes without --from, which reads what was measured"},
    {{"measure", "--panel", "--against", "none.csv"}, 2, "against: 'none.csv' does not exist"},
    {{"calibrate", "--name", ""}, 2, "name: '' must not be empty"},
    {{"calibrate", "--name", "a\xff"}, 2, "name: 'a\xff' must be UTF-8 without control characters"},
    {{"calibrate", "--name", "a\tb"}, 2, "name: 'a\\x09b' must be UTF-8 without control characters"},
    {{"tune", "--top", "0"}, 2, "top: 0 is outside 1 to 100"},
    {{"tune", "--where", "stages"}, 2, "where: 'stages' is not FIELD=VALUE"},
    {{"tune", "--where", "matrix_kind=hmma"}, 2, "matrix_kind: \"hmma\" must be one of mma_sync, wgmma (in --where)"},
    {{"tune", "--where", "tile_m=\xff"}, 2, "tile_m: \"\xEF\xBF\xBD\" must be a number (in --where)"},
    {{"predict", "--set", "key_order=\xff"},
     2,
     "key_order: \"\xEF\xBF\xBD\" must be one of descending, ascending (in --set)"},
    {{"predict", "--set", "tile_m"}, 2, "set: 'tile_m' is not FIELD=VALUE"},
    {{"predict", "--set", "tile_m=100"}, 2, "tile_m: 100 is no multiple of 16, the rows of a matrix step (in --set)"},
    {{"predict", "--set", "tile_m=64", "--set", "tile_m=64"}, 2, "tile_m: set twice; must be set once (in --set)"},
    {{"predict", "--set", "--set", "tile_m=64"}, 2, "set: '--set' is a flag, where a value was expected"},
    {{"predict", "--plan", "none.json"}, 2, "plan: 'none.json' does not exist"},
    {{"predict", "--set", "copy_bytes_v=3"}, 2, "copy_bytes_v: 3 is none of 1, 2, 4, 8, 16 (in --set)"},
    {{"predict", "--set", "known_registers=256"},
     2,
     "known_registers: 256 is more than registers_per_thread_max = 255 of h100 (in --set)"},
    {{"plans", "--headdim", "64"}, 2, "headdim: --headdim goes with --plan P"},
    {{"plans", "--set", "tile_m=64"}, 2, "set: --set goes with --plan P"},
    {{"predict", "--sequlen-q", "5"},
     2,
     "command line: '--sequlen-q' is no flag of 'attest predict'; did you mean --seqlen-q?"},
    {{"predict", "--seqlen-q=5", "7"}, 2, "command line: '7' is no flag of 'attest predict'"},
    {{"predict", "--batch", "2", "--batch", "3"}, 2, "batch: '2' and '3' were both given; a flag may be given once"},
    {{"predict", "--batch"}, 2, "batch: nothing follows --batch, which takes one value"},
    {{"predict", "--dtype", "--causal"}, 2, "dtype: '--causal' is a flag, where a value was expected"},
    {{"predict", "--dtype", "fp8_e4m3"}, 77, "dtype: the cost models do not describe 8-bit inputs"},
    {{"predict", "--backward"}, 77, "backward: the cost models do not describe the backward"},
    {{"check", "--dry-run=yes"}, 2, "dry_run: 'yes' is a value, and --dry-run takes none"},
    {{"predict", "--alibi=true"}, 2, "alibi: 'true' is a value, and --alibi takes none"},
    {{"predict", "--alibi", "false"}, 2, "alibi: 'false' is a value, and --alibi takes none"},
    {{"predict", "--sink=0"}, 2, "sink: '0' is a value, and --sink takes none"},
    {{"predict", "--case", "{}", "--alibi"}, 2, "alibi: 'true' contradicts --case, which gives this field already"},
    {{"predict", "--json", ""}, 2, "json: '' is neither a file nor -"},

    // numbers
    {{"predict", "--batch", "0"}, 2, "batch: 0 is outside 1 to 1048576"},
    {{"predict", "--batch", "-1"}, 2, "batch: -1 is outside 1 to 1048576"},
    {{"predict", "--seqlen-q", "-5"}, 2, "seqlen_q: -5 is outside 0 to 67108864"},
    {{"predict", "--seqlen-k", "67108865"}, 2, "seqlen_k: 67108865 is outside 0 to 67108864"},
    {{"predict", "--seqlen-q", "99999999999999999999"},
     2,
     "seqlen_q: 99999999999999999999 is outside -9223372036854775808 to 9223372036854775807"},
    {{"predict", "--headdim", "64x"},
     2,
     "headdim: '64x' is not an integer from -9223372036854775808 to 9223372036854775807"},
    {{"predict", "--headdim", "257"}, 2, "headdim: 257 is outside 1 to 256"},
    {{"predict", "--headdim-v", "0"}, 2, "headdim_v: 0 is outside 1 to 256"},
    {{"predict", "--nheads", "8", "--nheads-k", "3"}, 2, "nheads: 8 is not a multiple of nheads_k = 3"},
    {{"predict", "--nheads", "65537"}, 2, "nheads: 65537 is outside 1 to 65536"},
    {{"predict", "--batch", "1048576", "--nheads", "65536", "--seqlen-q", "67108864"},
     2,
     "q: 1048576 x 67108864 x 65536 x 64 elements are 2^40 or more, the most a tensor may have"},
    {{"predict", "--softmax-scale", "nan"}, 2, "softmax_scale: 'nan' is not a finite number"},
    {{"predict", "--softmax-scale", "1e30"}, 2, "softmax_scale: 1e+30 is not a finite number of magnitude up to 2^20"},
    {{"predict", "--window", "3"}, 2, "window: '3' is not two integers of 64 bits with a comma between, such as 128,0"},
    {{"predict", "--window", "-2,0"}, 2, "window_left: -2 is outside -1 to 1073741824"},
    {{"predict", "--seed", "-1"}, 2, "seed: '-1' is not an integer from 0 to 18446744073709551615"},
    {{"predict", "--base-offset", "-1"}, 2, "base_offset: -1 is outside 0 to 1048576"},
    {{"fuzz", "--cases", "0"}, 2, "cases: 0 is outside 1 to 9223372036854775807"},
    {{"fuzz", "--time", "5d"},
     2,
     "time: '5d' is not a time such as 500ms, 60s, 30m or 8h, more than 0 and at most 168h"},
    {{"fuzz", "--shard", "4/4"}, 2, "shard: '4/4' is not I/N with 0 <= I < N, such as 0/4"},
    {{"fuzz", "--threads", "0"}, 2, "threads: 0 is outside 1 to 1024"},
    {{"nightly", "--out", "n", "--tests", "none"}, 2, "tests: 'none' is no folder"},
    {{"check", "--mask", ""}, 2, "mask: '' is no file"},
    {{"check", "--mask", "."}, 3, "'.': cannot be written: it is a folder"},
    {{"check", "--mask-head", "0"}, 2, "mask_head: 0 selects a part of the mask, which takes --mask FILE"},
    {{"check", "--mask", "m.svg", "--mask-head", "1"}, 2, "mask_head: 1 is outside 0 to 0"},
    {{"check", "--mask", "m.svg", "--seqlen-q", "10000", "--seqlen-k", "10000"},
     2,
     "mask: 1 x 10000 x 10000 pairs of a query and a key are more than 67108864; choose --mask-batch and --mask-head, "
     "or shorter sequences"},
    {{"check", "--mask", "-"}, 2, "mask: '-' is no file; only --json writes to stdout"},
    {{"fuzz", "--junit", "-"}, 2, "junit: '-' is no file; only --json writes to stdout"},
    {{"check", "--softcap", "1e400"},
     2,
     "softcap: '1e400' is no number of float64: 0, or 4.9e-324 to 1.8e308 in magnitude"},
    {{"check", "--case", R"({"batch": 2, "softcap": 1e400})"},
     2,
     "softcap: '1e400' is beyond float64, whose largest is 1.8e308"},
    {{"check", "--diffs", "-1"}, 2, "diffs: -1 is outside 0 to 9223372036854775807"},

    // words
    {{"predict", "--dtype", "fp64"}, 2, "dtype: 'fp64' is none of fp16, bf16, fp32, fp8_e4m3, fp8_e5m2"},
    {{"check", "--case", R"({"cu_seqlens_q": [0]})"},
     2,
     "cu_seqlens_q: of one number has no batch entry: the sums of N lengths are N + 1"},
    {{"check", "--case", R"({"page_size": 4, "page_table": [[0, 1.5]]})"},
     2,
     "page_table[0][1]: 1.5 is not an integer of 64 bits"},
    {{"fuzz", "--cases", "1", "--junit", "a.xml", "--json", "./a.xml"},
     2,
     "junit: 'a.xml' is the file of --json as well; one would replace the other"},
    {{"predict", "--seqlen-q", "1", "--seqlen-k", "1", "--json", "a.html", "--html", "./a.html"},
     2,
     "html: './a.html' is the file of --json as well; one would replace the other"},
    {{"predict", "--trace", "a", "--html", "./a"},
     2,
     "trace: 'a' is the file of --html as well; one would replace the other"},
    {{"check", "++"}, 2, "command line: '++' belongs to no flag"},
    {{"check", "--layout", "bshd,"}, 2, "layout: '' is not of the form bshd|bhsd[,row_gap=N][,seq_gap=N]"},
    {{"check", "--layout", "bshd,row_gap=1,row_gap=2"},
     2,
     "layout: 'row_gap=2' is not of the form bshd|bhsd[,row_gap=N][,seq_gap=N]"},
    {{"check", "--documents", "3,4"},
     2,
     "documents: of 7 positions together do not cover max(seqlen_q, seqlen_k) = 128"},
    {{"check", "--varlen-k", "3,,4"},
     2,
     "varlen_k: '3,,4' is not a list of integers of 64 bits with commas between, such as 64,0,3"},
    {{"check", "--varlen-q", "3,0,5", "--varlen-k", "1,2"},
     2,
     "varlen_q: of 3 lengths does not have one for each of batch = 2"},
    {{"check", "--varlen-q", "3,5", "--seqlen-q", "6"}, 2, "seqlen_q: 6 is not 5, the longest of varlen_q"},
    {{"check", "--batch", "2", "--seqused-k", "1,300"}, 2, "seqused_k[1]: 300 is outside 0 to 128"},
    {{"check", "--bias=bq"}, 2, "bias: 'bq' is none of none, bhqk, 1hqk, b1qk, 11qk"},
    {{"check", "--softcap", "-1"}, 2, "softcap: -1 is neither 0, which is none, nor within 2^-20 to 2^20"},
    {{"check", "--num-splits", "0"},
     2,
     "num_splits: 0 is outside 1 to 256; how many suit a device says `attest predict --auto-splits`"},
    {{"check", "--num-splits", "257"}, 2, "num_splits: 257 is outside 1 to 256"},
    {{"check", "--page-size", "64", "--page-table", "1,9", "--num-pages", "4"},
     2,
     "page_table[0][1]: 9 is outside 0 to 3"},
    {{"check", "--page-size", "64", "--page-table", "1"},
     2,
     "page_table[0]: of 1 pages is short of the 2 that its keys fill"},
    {{"check", "--page-size", "64", "--page-table", "1,1"},
     2,
     "page_table[0][1]: 1 is a page that the table has already"},
    {{"check", "--page-size", "64", "--varlen-k", "5"},
     2,
     "page_size: 64 contradicts varlen_k, which packs the keys; give the lengths as seqused_k"},
    {{"check", "--case", R"({"cu_seqlens_q": [0, 5, 3]})"},
     2,
     "cu_seqlens_q[2]: 3 is below 5 before it: the sums must ascend"},
    {{"check", "--case", R"({"cu_seqlens_k": [0, 5], "total_k": 6})"},
     2,
     "cu_seqlens_k: ending at 5 does not end at the total, 6"},
    {{"check", "--case", R"({"documents": [100, 28.5]})"}, 2, "documents[1]: 28.5 is not an integer of 64 bits"},
    {{"check", "--case", R"({"alibi": 1})"}, 2, "alibi: 1 is neither true nor false"},
    {{"predict", "--causal=upper"}, 2, "causal: 'upper' is none of none, bottom-right, top-left"},
    {{"predict", "--inputs", "uniform"},
     2,
     "inputs: 'uniform' is none of normal, large, shift, zero_q, one_v, one_hot_v, non_finite, "
     "orthogonal_dout"},
    {{"predict", "--layout", "sbhd"}, 2, "layout: 'sbhd' is not of the form bshd|bhsd[,row_gap=N][,seq_gap=N]"},
    {{"predict", "--device", "h10"},
     2,
     "device: 'h10' is none of a100, ascend910b, b200, h100, h200, mtt-s4000, orin-agx, rtx3090, rtx4090; did you mean "
     "h100?"},
    {{"predict", "--plan", "fa2x"},
     2,
     "plan: 'fa2x' is none of attest, fa2, fa3, cudnn, sm80-no-swizzle, sm80-sync-copies, sm80-no-skip, sm80-spill; "
     "did "
     "you mean fa2?"},
    {{"fuzz", "--kernel", "gpu"},
     2,
     "kernel: 'gpu' is none of cpu, sm80, sm80-no-swizzle, sm80-sync-copies, sm80-no-skip, sm80-spill, unfused, "
     "mutant; did you mean cpu?"},
    {{"fuzz", "--kernel", "cpu:tile_q=64"},
     2,
     "kernel: 'tile_q=64' sets none of tile_m, tile_n, warps, stages, q_in_registers, lazy_rescale, merged_wait, "
     "order, grid, packed_heads"},
    {{"check", "--kernel", "cpu:tile_m=64,tile_m=64"}, 2, "kernel: 'tile_m=64' sets tile_m again"},
    {{"check", "--kernel", "cpu:tile_m=3"},
     2,
     "kernel: tile_m=3,tile_n=128,warps=2,stages=1 makes no kernel: tile_m 3 is outside 16 to 512"},
    {{"check", "--kernel", "mutant:0"}, 2, "kernel: 'mutant:0' is no mutant; see attest mutants"},
    {{"check", "--property", "refrence"},
     2,
     "property: 'refrence' is none of hazards, reference, zero_q, one_v, one_hot_v, shift, gqa, batch, "
     "key_permutation, layout, packing, rewriting, documents, splits, descale, repeat, accumulator, weights, lookup, "
     "mask, counts; did you mean reference?"},
    {{"predict", "--model", "lama-3-70b", "--seqlen", "5"},
     2,
     "model: 'lama-3-70b' is none of " + models + "; did you mean llama-3-70b?"},

    // contradictions
    {{"predict", "--case", "{}", "--batch", "2"}, 2, "batch: '2' contradicts --case, which gives this field already"},
    {{"predict", "--case", "{}", "--seed", "2"}, 2, "seed: '2' contradicts --case, which gives this field already"},
    {{"predict", "--case", "{}", "--model", "bert-base"},
     2,
     "model: 'bert-base' contradicts --case, which gives this field already"},
    {{"predict", "--model", "bert-base", "--seqlen", "8", "--headdim", "32"},
     2,
     "headdim: '32' contradicts --model, which gives this field already"},
    {{"predict", "--model", "bert-base"}, 2, "model: 'bert-base' needs --seqlen N, its tokens"},
    {{"predict", "--seqlen", "8"}, 2, "seqlen: '8' goes with --model; otherwise give --seqlen-q and --seqlen-k"},

    // cases as JSON and files
    {{"predict", "--case", "{"}, 2, "case: 1 bytes are not JSON: malformed at byte 2"},
    {{"predict", "--case", R"({"batch": "2"})"}, 2, R"(batch: "2" is not an integer of 64 bits)"},
    {{"predict", "--case", R"({"batch": 1e300})"}, 2, "batch: 1e+300 is not an integer of 64 bits"},
    {{"predict", "--case", R"({"bach": 2})"}, 2, "bach: 2 is no field of a case"},
    {{"predict", "--case", R"({"schema": "attest/case/9"})"},
     2,
     "schema: 'attest/case/9' is not 'attest/case/1', the one this version reads"},
    {{"predict", "--case", R"({"batch": null})"}, 2, "batch: null is not an integer of 64 bits"},
    {{"predict", "--case", R"({"causal": null})"}, 2, "causal: null is not a string"},
    {{"predict", "--case", R"({"alibi": null})"}, 2, "alibi: null is neither true nor false"},
    {{"predict", "--case", R"({"softcap": null})"}, 2, "softcap: null is not a number"},
    {{"predict", "--case", R"({"seed": null})"}, 2, "seed: null is not an integer of 0 to 2^64 - 1"},
    {{"predict", "--case", R"({"documents": null})"}, 2, "documents: null is not a list of integers"},
    {{"predict", "--case", R"({"page_table": null})"}, 2, "page_table: null is not a list of lists of integers"},
    {{"predict", "--case", R"({"schema": null})"},
     2,
     "schema: 'null' is not 'attest/case/1', the one this version reads"},
    {{"predict", "--case", R"({"cu_seqlens_q": [0, 3], "total_q": null})"},
     2,
     "total_q: null is not an integer of 64 bits"},
    {{"predict", "--case", R"({"varlen_q": []})"}, 2, "varlen_q: [] is an empty list; leave the field out"},
    {{"predict", "--case", R"({"cu_seqlens_k": []})"}, 2, "cu_seqlens_k: [] is an empty list; leave the field out"},
    {{"predict", "--case", R"({"page_table": []})"}, 2, "page_table: [] is an empty list; leave the field out"},
    {{"predict", "--case", R"({"dtype": "bf\u000016"})"},
     2,
     "dtype: 'bf\\x0016' is none of fp16, bf16, fp32, fp8_e4m3, fp8_e5m2"},
    {{"predict", "--case", R"({"ba\u0000ch": 2})"}, 2, "ba\\x00ch: 2 is no field of a case"},
    {{"predict", "--case", R"({")" + std::string(5000, 'x') + R"(": 2})"},
     2,
     std::string(200, 'x') + "...: 2 is no field of a case"},
    {{"predict", "--headdim", std::string(5000, '9')},
     2,
     "headdim: " + std::string(200, '9') + "... is outside -9223372036854775808 to 9223372036854775807"},
    {{"predict", "--case", "missing.json"}, 2, "case: 'missing.json' does not exist"},
    {{"predict", "--case", "."}, 2, "case: '.' is not a regular file"},
    {{"predict", "--case", "truncated.json"}, 2, "case: 12 bytes are not JSON: malformed at byte 13"},
    {{"predict", "--case", "padded.json"}, 2, "case: 20 bytes are not JSON: 0 at byte 15"},
    {{"predict", "--device", "padded.json"}, 2, "device: 20 bytes are not JSON: 0 at byte 15 (in padded.json)"},
    {{"predict", "--case", ""}, 2, "case: '' is neither a file nor a JSON object"},
    {{"predict", "--device", "truncated.json"},
     2,
     "device: 12 bytes are not JSON: malformed or cut off at byte 13, behind 'batch' (in truncated.json)"},
    {{"predict", "--device", "beyond.json"}, 2, "num_sms: its number is beyond 1.8e308 (in beyond.json)"},
    {{"predict", "--plan", "fa3", "--device", "h200", "--headdim", "3"},
     2,
     "copy_kind: tma needs strides of multiples of 16 bytes, and headdim = 3 with row_gap = 0 makes them 6"},
    {{"predict", "--set", "copy_kind=tma", "--set", "producer_warps=1", "--base-offset", "3"},
     2,
     "copy_kind: tma needs tensors that begin at multiples of 16 bytes, and base_offset = 3 makes it 6 (in --set)"},
    {{"predict", "--device", "none\x1b[31m.json"}, 2, "device: 'none\\x1b[31m.json' does not exist"},
    {{"predict", "--device", "ascend910b", "--auto-splits"},
     2,
     "auto_splits: --auto-splits asks for splits, which the model of ascend910b lacks"},
    {{"predict", "--device", "ascend910b", "--num-splits", "4"},
     2,
     "num_splits: 4 asks for splits, which the model of ascend910b lacks"},
    {{"predict", "--device", "missing.json"}, 2, "device: 'missing.json' does not exist"},
    {{"predict", "--device", "./"}, 2, "device: './' is not a regular file"},
    {{"predict", "--device", "/dev/zero"}, 2, "device: '/dev/zero' is not a regular file"},
    {{"fuzz", "--corpus", "", "--json", "x.json"}, 2, "corpus: '' is no folder"},
};

class BadInputTest : public ::testing::TestWithParam<BadInput> {};

TEST_P(BadInputTest, OneLineAndNothingWritten) { expect_one_line_and_nothing_written(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Table, BadInputTest, ::testing::ValuesIn(bad_inputs));

// By whoever says it: what dlopen() and Python quote of a file's name, as a flag's own value.
TEST(BadInput, ControlCharactersOfAFilesNameAreEscaped) {
  const Folder folder;
  const std::string name = "./two\nlines\x7f\xc2\x9b.so", shown = "./two\\x0alines\\x7f\\xc2\\x9b.so";
  folder.write(name, "no library");
  const Ran check = run_attest({"check", "--kernel", name}, folder),
            doctor = run_attest({"doctor", "--kernel", name}, folder);
  EXPECT_EQ(check.err.find("attest: kernel '" + shown + "' cannot be loaded: "), 0u) << check.err;
  EXPECT_EQ(std::count(check.err.begin(), check.err.end(), '\n'), 1) << check.err;
  EXPECT_EQ(doctor.out.find("kernel " + shown + "\n"), 0u) << doctor.out;
  EXPECT_EQ(std::count(doctor.out.begin(), doctor.out.end(), '\n'), 2) << doctor.out;
}

TEST(BadInput, APanelAgainstOneOfOtherCalls) {
  const Folder folder;
  folder.write("other.csv", "mechanism,kernel,case,launch,function,a.sum\nm,cpu,{},0,f,1\n");
  const Ran ran = run_attest({"measure", "--panel", "--from", ATTEST_PANEL, "--against", "other.csv"}, folder);
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_EQ(ran.err, "attest: against: 'other.csv' has no call of these\n");
}

}  // namespace
}  // namespace attest::tools
