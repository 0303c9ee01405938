#include "case_flags.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "attest/problem/error.h"
#include "run_attest.h"

namespace attest::tools {
namespace {

// What a command that takes a CASE reads from these words.
Case case_of(std::vector<std::string> arguments) {
  CLI::App app("test", "check");
  app.allow_extras();
  Flags flags(app);
  declare_case_flags(flags);
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes a vector from its end
  app.parse(std::move(arguments));
  flags.check();
  return read_case(flags);
}

std::string error_of(const std::vector<std::string>& arguments) {
  try {
    case_of(arguments);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

rc::Gen<std::int64_t> integer(std::int64_t low, std::int64_t high) { return rc::gen::inRange(low, high + 1); }

Case any_case() {
  Case c;
  Problem& p = c.problem;
  p.batch = *integer(1, 5);
  p.nheads_k = *integer(1, 9);
  p.nheads = p.nheads_k * *integer(1, 9);
  p.seqlen_q = *integer(0, 100000);
  p.seqlen_k = *integer(0, 100000);
  p.headdim = *integer(1, 256);
  p.headdim_v = *integer(1, 256);
  p.dtype = *rc::gen::elementOf(std::vector<Dtype>(std::begin(all_dtypes), std::end(all_dtypes)));
  if (*rc::gen::arbitrary<bool>())
    p.softmax_scale = *rc::gen::map(integer(-1000000, 1000000), [](auto n) { return n / 3e4; });
  p.causal = *rc::gen::element(Causal::none, Causal::bottom_right, Causal::top_left);
  p.window_left = *integer(-1, 50);
  p.window_right = *integer(-1, 50);
  c.layout.order = *rc::gen::element(Layout::Order::bshd, Layout::Order::bhsd);
  c.layout.row_gap = *integer(0, 3);
  c.layout.seq_gap = *integer(0, 3);
  c.layout.base_offset = *integer(0, 3);
  c.inputs = *rc::gen::elementOf(std::vector<Distribution>(std::begin(all_distributions), std::end(all_distributions)));
  c.seed = *rc::gen::arbitrary<std::uint64_t>();
  return c;
}

RC_GTEST_PROP(CaseFlags, CommandLineReadsBack, ()) {
  const Case c = any_case();
  RC_ASSERT(case_of(words(command_line(c))) == c);
}

RC_GTEST_PROP(CaseFlags, JsonReadsBack, ()) {
  const Case c = any_case();
  RC_ASSERT(case_of({"--case", to_json(c).dump()}) == c);
}

// A default is another field where help says so.
TEST(CaseFlags, KeysAreAsManyAsQueriesWhereNobodySays) {
  EXPECT_EQ(case_of({"--seqlen-q", "300"}).problem.seqlen_k, 300);
  const std::string help = run_attest({"predict", "--help"}, Folder()).out;
  EXPECT_NE(help.find("Keys a sequence (seqlen_q)"), std::string::npos) << help;
}

TEST(CaseFlags, DefaultsAreThoseOfTheJson) {
  EXPECT_EQ(case_of({}), case_from_json_text("{}"));
  const Case c = case_of({"--nheads", "8", "--headdim", "96"});
  EXPECT_EQ(c.problem.nheads_k, 8);
  EXPECT_EQ(c.problem.headdim_v, 96);
}

TEST(CaseFlags, CausalHasAnAlignment) {
  EXPECT_EQ(case_of({}).problem.causal, Causal::none);
  EXPECT_EQ(case_of({"--causal"}).problem.causal, Causal::bottom_right);
  EXPECT_EQ(case_of({"--causal", "--batch", "2"}).problem.causal, Causal::bottom_right);
  EXPECT_EQ(case_of({"--causal=bottom-right"}).problem.causal, Causal::bottom_right);
  EXPECT_EQ(case_of({"--causal=top-left"}).problem.causal, Causal::top_left);
  EXPECT_EQ(case_of({"--causal", "top-left"}).problem.causal, Causal::top_left);
  EXPECT_EQ(error_of({"--causal=none", "--batch", "2"}), "");
}

TEST(CaseFlags, ReadsAFile) {
  const Folder folder;
  Case c;
  c.problem.seqlen_q = 3;
  folder.write("case.json", to_json(c).dump());
  EXPECT_EQ(case_of({"--case", folder.path() / "case.json"}), c);
}

TEST(CaseFlags, RefusesContradictions) {
  EXPECT_EQ(error_of({"--case", "{}", "--batch", "2"}),
            "batch: '2' contradicts --case, which gives this field already");
  EXPECT_EQ(error_of({"--case", "{}", "--causal"}), "causal: '' contradicts --case, which gives this field already");
  EXPECT_EQ(error_of({"--batch", "2", "--batch", "3"}), "batch: '2' and '3' were both given; a flag may be given once");
}

}  // namespace
}  // namespace attest::tools
