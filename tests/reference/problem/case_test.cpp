#include "attest/problem/case.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "attest/problem/error.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

// Any valid case, extremes included.
rc::Gen<Case> any_case() {
  return rc::gen::exec([] {
    Case c;
    Problem& p = c.problem;
    const auto below = [](std::int64_t low, std::int64_t high) {
      return *rc::gen::inRange<std::int64_t>(low, high + 1);
    };
    p.nheads_k = below(1, 9);
    p.nheads = p.nheads_k * below(1, 9);
    p.batch = below(1, 40);
    p.seqlen_q = *rc::gen::element<std::int64_t>(0, 1, 65, 1 << 20);
    p.seqlen_k = *rc::gen::element<std::int64_t>(0, 1, 4090, 1 << 20);
    p.headdim = below(1, 256);
    p.headdim_v = below(1, 256);
    p.dtype = *rc::gen::elementOf(std::vector(std::begin(all_dtypes), std::end(all_dtypes)));
    p.causal = *rc::gen::element(Causal::none, Causal::bottom_right, Causal::top_left);
    p.window_left = *rc::gen::element<std::int64_t>(-1, 0, 63, 1 << 30);
    p.window_right = *rc::gen::element<std::int64_t>(-1, 0, 64, 1 << 30);
    if (*rc::gen::arbitrary<bool>())
      p.softmax_scale = *rc::gen::element(0.0, -0.5, 0.1, 1.0 / 3, 1e-300, 0x1p20, 5e-324);
    const auto lengths = [&](std::int64_t longest) {  // one a batch entry, the longest among them
      std::vector<std::int64_t> all(static_cast<std::size_t>(p.batch));
      for (auto& n : all) n = below(0, longest);
      all[static_cast<std::size_t>(below(0, p.batch - 1))] = longest;
      return all;
    };
    p.prefix = *rc::gen::element<std::int64_t>(0, 1, 1 << 26);
    if (*rc::gen::arbitrary<bool>()) {
      const std::int64_t positions = std::max(p.seqlen_q, p.seqlen_k), first = below(0, positions);
      p.documents = {first, 0, positions - first};
    }
    p.softcap = *rc::gen::element(0.0, 0x1p-20, 30.0, 50.1);
    p.alibi = *rc::gen::arbitrary<bool>();
    p.sink = *rc::gen::arbitrary<bool>();
    // a score for each of 2^20 queries and many keys would be past the limit of elements
    if (p.seqlen_q < 100 && p.seqlen_k < 5000)
      p.bias = *rc::gen::element(Bias::none, Bias::bhqk, Bias::hqk, Bias::bqk, Bias::qk);
    if (*rc::gen::arbitrary<bool>()) p.varlen_q = lengths(p.seqlen_q);
    switch (below(0, 3)) {
      case 0:
        p.varlen_k = lengths(p.seqlen_k);
        p.seqused_k = p.varlen_k;
        break;
      case 1:
        p.seqused_k = lengths(p.seqlen_k / 2);
        break;
      case 2:
        c.layout.page_size = *rc::gen::element<std::int64_t>(1, 16, 256);
        if (*rc::gen::arbitrary<bool>()) c.layout.num_pages = p.batch * (p.seqlen_k / c.layout.page_size + 2);
        if (p.seqlen_k < 5000)
          for (std::int64_t b = 0; b < p.batch; ++b)
            for (auto& row = c.layout.page_table.emplace_back(); std::ssize(row) * c.layout.page_size < p.seqlen_k;)
              row.push_back(std::ssize(row) * p.batch + b);
        break;
      default:
        break;
    }
    c.num_splits = *rc::gen::element<std::int64_t>(1, 2, 256);
    c.backward = *rc::gen::arbitrary<bool>();
    c.deterministic = *rc::gen::arbitrary<bool>();
    c.layout.order = *rc::gen::element(Layout::Order::bshd, Layout::Order::bhsd);
    c.layout.row_gap = *rc::gen::element<std::int64_t>(0, 1, 56);  // wider ones with the longest rows pass 2^40
    c.layout.seq_gap = c.layout.page_size > 0 ? below(0, 3) : *rc::gen::element<std::int64_t>(0, 3, 1 << 12);
    c.layout.base_offset = *rc::gen::element<std::int64_t>(0, 1, 1 << 20);
    c.inputs = *rc::gen::elementOf(std::vector(std::begin(all_distributions), std::end(all_distributions)));
    c.seed = *rc::gen::arbitrary<std::uint64_t>();
    return c;
  });
}

RC_GTEST_PROP(CaseTest, JsonRoundTrip, ()) {
  const Case c = *any_case();
  validate(c);
  RC_ASSERT(case_from_json(to_json(c)) == c);
  RC_ASSERT(case_from_json_text(to_json(c).dump()) == c);
}

RC_GTEST_PROP(CaseTest, CanonicalJsonIsStable, ()) {
  const Json json = to_json(*any_case());
  RC_ASSERT(to_json(case_from_json(json)).dump() == json.dump());
}

RC_GTEST_PROP(CaseTest, LayoutSpecRoundTrips, ()) {
  Layout layout = (*any_case()).layout;
  layout.base_offset = layout.page_size = layout.num_pages = 0;  // have flags of their own
  layout.page_table.clear();
  RC_ASSERT(layout_from_spec(layout_spec(layout)) == layout);
}

TEST(CaseTest, SeedsOf64BitsSurvive) {
  Case c;
  c.seed = UINT64_MAX;
  EXPECT_EQ(case_from_json_text(to_json(c).dump()).seed, UINT64_MAX);
}

TEST(CaseTest, FieldsLeftOutTakeTheirDefaults) {
  const Case c = case_from_json_text(R"({"nheads": 6, "seqlen_q": 9, "headdim": 40})");
  EXPECT_EQ(c.problem.nheads_k, 6);
  EXPECT_EQ(c.problem.seqlen_k, 9);
  EXPECT_EQ(c.problem.headdim_v, 40);
  EXPECT_EQ(c.inputs, Distribution::normal);
}

TEST(CaseTest, CommandLineNamesWhatIsNotDefault) {
  Case c;
  c.problem.nheads = 4;
  c.problem.nheads_k = 2;
  c.problem.softmax_scale = -0.5;
  c.problem.causal = Causal::top_left;
  c.problem.window_left = 3;
  c.layout.order = Layout::Order::bhsd;
  c.layout.seq_gap = 5;
  c.layout.base_offset = 1;
  c.inputs = Distribution::one_hot_v;
  c.seed = 7;
  EXPECT_EQ(
      command_line(c),
      "--batch 1 --nheads 4 --nheads-k 2 --seqlen-q 128 --seqlen-k 128 --headdim 64 --dtype bf16 --softmax-scale=-0.5 "
      "--causal=top-left --window=3,-1 --layout bhsd,seq_gap=5 --base-offset 1 --inputs one_hot_v --seed 7");
}

TEST(CaseTest, CommandLineOfEveryFeature) {
  Case c = case_from_json_text(R"({"cu_seqlens_q": [0, 3, 3, 8], "total_q": 8, "seqlen_k": 40, "prefix": 2,
    "documents": [30, 10], "softcap": 30, "alibi": true, "sink": true, "bias": "1hqk", "seqused_k": [0, 40, 17],
    "page_size": 16, "page_table": [[], [5, 0, 2], [1, 3]], "num_pages": 6, "num_splits": 2, "backward": true,
    "deterministic": true})");
  EXPECT_EQ(c.problem.batch, 3);
  EXPECT_EQ(c.problem.seqlen_q, 5);
  EXPECT_EQ(c.problem.varlen_q, (std::vector<std::int64_t>{3, 0, 5}));
  EXPECT_EQ(command_line(c),
            "--batch 3 --nheads 1 --nheads-k 1 --seqlen-q 5 --seqlen-k 40 --headdim 64 --dtype bf16 --prefix 2 "
            "--documents 30,10 --softcap 30 --alibi --sink --bias=1hqk --varlen-q 3,0,5 --seqused-k 0,40,17 "
            "--page-size 16 --num-pages 6 --page-table /5,0,2/1,3 --num-splits 2 --backward --deterministic --seed 0");
}

// A refusal is one line that begins with the field and has the value in it.
void expect_refused(const std::string& text, const std::string& field, const std::string& value) {
  try {
    case_from_json_text(text);
    ADD_FAILURE() << text << " was taken";
  } catch (const InvalidInput& error) {
    EXPECT_EQ(error.field(), field) << text;
    EXPECT_EQ(std::string(error.what()).rfind(field + ": ", 0), 0u) << error.what();
    EXPECT_NE(std::string(error.what()).find(value), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
  }
}

TEST(CaseTest, GapsMayReachTheirLimit) {
  Case c;
  c.layout.row_gap = c.layout.seq_gap = c.layout.base_offset = 1 << 20;
  EXPECT_THROW(validate(c), InvalidInput) << "2^20 rows of 2^20 elements span 2^40";
  c.layout.seq_gap = (1 << 20) - 200;
  EXPECT_NO_THROW(validate(c));
}

TEST(CaseTest, Refusals) {
  expect_refused("", "case", "0 bytes");
  expect_refused("{\"batch\": 1", "case", "11 bytes");
  expect_refused("[1]", "case", "[1]");
  expect_refused(R"({"schema": "attest/case/2"})", "schema", "attest/case/2");
  expect_refused(R"({"schema": 3})", "schema", "3");
  expect_refused(R"({"bacth": 1})", "bacth", "1");
  expect_refused(R"({"batch": "1"})", "batch", "\"1\"");
  expect_refused(R"({"batch": 1.5})", "batch", "1.5");
  expect_refused(R"({"batch": 18446744073709551615})", "batch", "18446744073709551615");
  expect_refused(R"({"batch": 1e30})", "batch", "e+30");
  expect_refused(R"({"seed": -1})", "seed", "-1");
  expect_refused(R"({"dtype": "fp64"})", "dtype", "fp64");
  expect_refused(R"({"dtype": 16})", "dtype", "16");
  expect_refused(R"({"causal": "yes"})", "causal", "yes");
  expect_refused(R"({"inputs": "uniform"})", "inputs", "uniform");
  expect_refused(R"({"softmax_scale": "a"})", "softmax_scale", "\"a\"");
  expect_refused(R"({"layout": "sbhd"})", "layout", "sbhd");
  expect_refused(R"({"layout": "bshd,row_gap=x"})", "row_gap", "x");
  expect_refused(R"({"layout": "bshd,row_gap=1048577"})", "row_gap", "1048577");
  expect_refused(
      R"({"batch": 1048576, "nheads": 16, "seqlen_q": 1, "headdim": 1, "layout": "bshd,row_gap=1048575,seq_gap=1048575"})",
      "layout", "2^40");
  expect_refused(R"({"batch": 1, "batch": 2})", "batch", "twice");
  expect_refused(R"({"base_offset": -1})", "base_offset", "-1");
}

}  // namespace
}  // namespace attest
