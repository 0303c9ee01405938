// What of a command line a user can get wrong, whatever its flags' values are: each row ends with its exit status and
// one line that names field, value and limit, and leaves nothing behind.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bad_input.h"

namespace attest::tools {
namespace {

const BadInput bad_command_lines[] = {
    {{},
     2,
     "command: '' is none of check, fuzz, predict, tune, measure, calibrate, reference, mutants, kernels, devices, "
     "plans, models, "
     "doctor, audit, bench, nightly, merge, report"},
    {{"predcit"}, 2, "command: 'predcit' is no command; did you mean predict?; see attest --help"},
    {{"experiment"}, 2, "command: 'experiment' is no command; see attest --help"},
    {{"--jsn", "-"}, 2, "command line: '--jsn' is no flag that stands before a command; see attest --help"},
    {{"predict", "measure"}, 2, "command line: 'predict' and 'measure' are commands; one a time"},
    {{"predict", "--csv", "x.csv"}, 2, "csv: 'x.csv' goes with --sweep"},
    {{"predict", "--warm", "--warm"}, 2, "warm: --warm was given 2 times; once is enough"},
    {{"check", "--in-process", "--timeout", "5s"}, 2, "timeout: '5s' goes without --in-process, which ends no call"},
    {{"check", "--in-process", "--load-timeout", "5s"},
     2,
     "load_timeout: '5s' goes without --in-process, which ends no call"},
    {{"predict", "--set", "exp_instructions=2"}, 2, "exp_instructions: 2 is neither 1 nor 4 (in --set)"},
    {{"report", ""}, 2, "dir: '' is no folder"},
    {{"check", "--kernel", "cpu:" + std::string(100'000, 'x')},
     2,
     "kernel: '" + std::string(195, 'x') +
         "...' sets none of tile_m, tile_n, warps, stages, q_in_registers, lazy_rescale, merged_wait, order, grid, "
         "packed_heads"},
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
    {{"predict", "--sweep", "seqlen_q=" + std::string(60'000, '[')},
     2,
     "sweep: '" + std::string(60, '[') + "' is nested more than 16 deep"},
    {{"predict", "--set", "num_warps=3"},
     2,
     "num_warps: 3 does not divide tile_m = 128 into multiples of 16 rows (in --set)"},
    {{"measure", "--out", "x.csv"}, 2, "out: 'x.csv' goes with --panel"},
    {{"measure", "--from", "x.csv"}, 2, "from: 'x.csv' goes with --panel"},
    {{"measure", "--kernel", "cpu"}, 2, "kernel: 'cpu' runs on no GPU, whose counters are read"},
    {{"measure", "--via", "perf"}, 2, "via: 'perf' is none of cupti, ncu"},
    {{"measure", "--kernel", "cpu", "--via", "perf"}, 2, "via: 'perf' is none of cupti, ncu"},
    {{"measure", "--repeats", "0"}, 2, "repeats: 0 is outside 1 to 1000"},
    {{"measure", "--panel", "--repeats", "1e3"}, 2, "repeats: '1e3' is not an integer from 1 to 1000"},
    {{"measure", "--panel", "--from", "none.csv", "--repeats", "2"},
     2,
     "from: --repeats goes without --from, which reads what was measured"},
    {{"measure", "--timeout", "x"},
     2,
     "timeout: 'x' is not a time such as 500ms, 60s, 30m or 8h, more than 0 and at most 168h"},
    {{"measure", "--load-timeout", "0s"},
     2,
     "load_timeout: '0s' is not a time such as 500ms, 60s, 30m or 8h, more than 0 and at most 168h"},
    {{"measure", "--plan", "fa4"},
     2,
     "plan: 'fa4' is none of attest, fa2, fa3, cudnn, sm80-no-swizzle, sm80-sync-copies, sm80-no-skip, sm80-spill; did "
     "you mean fa2?"},
    {{"measure", "--plan", "none.json"}, 2, "plan: 'none.json' does not exist"},
    {{"measure", "--set", "tile_m=3"}, 2, "tile_m: 3 is outside 16 to 512 (in --set)"},
    {{"measure", "--panel", "--out", ""}, 2, "out: '' is no file"},
    {{"measure", "--panel", "--out", "-"}, 2, "out: '-' is no file; only --json writes to stdout"},
    {{"measure", "--panel", "--out", "x.csv", "--html", "./x.csv"},
     2,
     "out: 'x.csv' is the file of --html as well; one would replace the other"},
    {{"measure", "--panel", "--out", "x.csv", "--json", "./x.csv"},
     2,
     "out: 'x.csv' is the file of --json as well; one would replace the other"},
    {{"measure", "--panel", "--device", "h20"},
     2,
     "device: 'h20' is none of a100, ascend910b, b200, h100, h200, mtt-s4000, orin-agx, rtx3090, rtx4090; did you mean "
     "h200?"},
    {{"measure", "--panel", "--from", "none.csv", "--device", "ascend910b"},
     2,
     "device: 'ascend910b' has cube and vector cores; counters are a GPU's"},
    {{"measure", "--panel", "--batch", "2"}, 2, "panel: --batch goes without --panel, whose cases are fixed"},
    {{"measure", "--panel", "--kernel", "sm80"}, 2, "panel: --kernel goes without --panel, whose kernels are fixed"},
    {{"measure", "--panel", "--from", "none.csv"}, 2, "from: 'none.csv' does not exist"},
    {{"measure", "--panel", "--from", "none.csv", "--via", "ncu"},
     2,
     "from: --via goes without --from, which reads what was measured"},
    {{"measure", "--panel", "--against", "none.csv"}, 2, "against: 'none.csv' does not exist"},
    {{"calibrate", "--name", ""}, 2, "name: '' must not be empty"},
    {{"calibrate", "--name", "a\xff"}, 2, "name: 'a\\xff' must be UTF-8 without control characters"},
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

};

class BadCommandLineTest : public ::testing::TestWithParam<BadInput> {};

TEST_P(BadCommandLineTest, OneLineAndNothingWritten) { expect_one_line_and_nothing_written(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Table, BadCommandLineTest, ::testing::ValuesIn(bad_command_lines));

}  // namespace
}  // namespace attest::tools
