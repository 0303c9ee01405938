// What predictions of the largest cases that validation admits hold in memory at a time, beside the limit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "run_attest.h"

namespace attest::tools {
namespace {

constexpr double wanted_mib = 1024;

struct Extreme {
  const char* name;
  std::string line;
};

void PrintTo(const Extreme& extreme, std::ostream* out) { *out << extreme.line; }

const Extreme extremes[] = {
    {"largest_batch", "predict --batch 1048576 --nheads 16 --seqlen-q 64 --seqlen-k 64 --headdim 64 --device h200"},
    {"largest_batch_of_decoding",
     "predict --batch 1048576 --nheads 8 --nheads-k 1 --seqlen-q 1 --seqlen-k 1024 --headdim 128 --device h200"},
    {"most_heads", "predict --nheads 65536 --seqlen-q 2048 --seqlen-k 2048 --headdim 64 --device h200"},
    {"longest_sequence", "predict --seqlen-q 67108864 --seqlen-k 67108864 --headdim 64 --device h200"},
    {"longest_causal_sequence",
     "predict --nheads 128 --nheads-k 8 --seqlen-q 16777216 --seqlen-k 16777216 --headdim 128 --causal --device h200"},
    {"longest_keys_in_splits",
     "predict --nheads 64 --nheads-k 8 --seqlen-q 1 --seqlen-k 67108864 --headdim 128 --num-splits 256 --device h200"},
    {"many_lengths", "predict --case lengths.json --device h200"},
    {"a_page_with_a_trace",
     "predict --batch 1048576 --nheads 16 --seqlen-q 64 --seqlen-k 64 --headdim 64 --device h200 --html page.html "
     "--trace trace.json"},
    {"longest_sweep", "predict --nheads 4 --sweep seqlen=1..1000 --device h200"},
    {"tune_of_500_plans", "tune --batch 4 --nheads 16 --seqlen-q 4096 --seqlen-k 4096 --headdim 128 --device a100"},
    {"tune_of_the_largest_batch",
     "tune --batch 1048576 --nheads 16 --seqlen-q 64 --seqlen-k 64 --headdim 64 --device a100"},
};

class Memory : public testing::TestWithParam<Extreme> {};
INSTANTIATE_TEST_SUITE_P(Extremes, Memory, testing::ValuesIn(extremes), [](const auto& p) { return p.param.name; });

TEST_P(Memory, StaysBelowTheLimit) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer keeps what is freed";
#endif
  const Folder folder;
  // each length once, in no order
  std::string lengths;
  constexpr int num_lengths = 60'000;
  for (int i = 0; i < num_lengths; ++i) lengths += fmt::format("{}{}", i == 0 ? "" : ",", i * 7919 % num_lengths + 1);
  folder.write("lengths.json", fmt::format(R"({{"varlen_q": [{0}], "varlen_k": [{0}], "headdim": 64}})", lengths));
  const Ran ran = run_attest(words(GetParam().line), folder);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  std::printf("%-28s %6.0f MiB of %.0f\n", GetParam().name, ran.peak_mib, wanted_mib);
  RecordProperty("peak_mib", static_cast<int>(ran.peak_mib));
  EXPECT_LT(ran.peak_mib, wanted_mib);
  EXPECT_GT(ran.peak_mib, 1) << "that is no program's";
}

}  // namespace
}  // namespace attest::tools
