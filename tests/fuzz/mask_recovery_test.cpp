#include "attest/fuzz/mask_recovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "attest/fuzz/generators.h"
#include "attest/fuzz/kernels.h"
#include "attest/fuzz/mask_report.h"
#include "attest/problem/error.h"
#include "attest/reference/attends.h"
#include "table_kernel.h"

namespace attest {
namespace {

using testing::HasSubstr;

Case make_case(std::int64_t seqlen_q, std::int64_t seqlen_k, std::int64_t headdim_v = 64, Dtype dtype = Dtype::bf16) {
  Case c;
  c.problem.seqlen_q = seqlen_q;
  c.problem.seqlen_k = seqlen_k;
  c.problem.headdim = 8;
  c.problem.headdim_v = headdim_v;
  c.problem.dtype = dtype;
  return c;
}

void expect_weights(const RecoveredMask& mask, const TableKernel::Weight& weight, double relative, const Case& c) {
  for (std::int64_t b = 0; b < c.problem.batch; ++b)
    for (std::int64_t h = 0; h < c.problem.nheads; ++h)
      for (std::int64_t i = 0; i < queries_of(c.problem, b); ++i)
        for (std::int64_t j = 0; j < c.problem.seqlen_k; ++j) {
          const double w = weight(b, h, i, j);
          ASSERT_NEAR(mask.weight(mask.row(b, h, i), j), w, w * relative)
              << "b " << b << " h " << h << " i " << i << " j " << j << " " << command_line(c);
        }
}

// Every mask the generator draws, read from a right kernel, pair by pair.
TEST(MaskRecovery, OfARightKernelIsTheTruth) {
  const std::unique_ptr<Kernel> kernel = make_kernel("cpu");
  int read = 0;
  for (std::uint64_t k = 0; k < 240; ++k) {
    const Case c = generate_case(5, k, {64, 1 << 17, 2048});
    if (kernel->unsupported(c) || mask_launches(c, true) > 12) continue;
    const RecoveredMask mask = recover_mask(*kernel, c);
    ASSERT_EQ(mask.launches, mask_launches(c, true)) << command_line(c);
    ASSERT_TRUE(compare_mask(c.problem, mask).same())
        << to_text("cpu", mask, compare_mask(c.problem, mask)) << command_line(c);
    expect_weights(
        mask, [&](auto b, auto, auto i, auto j) { return attends(c.problem, b, i, j) ? 1 : 0; }, 0, c);
    ++read;
  }
  EXPECT_GT(read, 70);
}

struct Source {
  Dtype dtype;
  std::int64_t headdim_v;
  bool offers_lse;
  double share;
};
void PrintTo(const Source& s, std::ostream* out) {
  *out << to_string(s.dtype) << " " << s.headdim_v << " " << s.offers_lse << " " << s.share;
}

class AnySet : public testing::TestWithParam<Source> {};
INSTANTIATE_TEST_SUITE_P(MaskRecovery, AnySet,
                         testing::Values(Source{Dtype::bf16, 64, true, 0.5}, Source{Dtype::bf16, 5, true, 0.03},
                                         Source{Dtype::fp16, 64, true, 0.97}, Source{Dtype::fp16, 33, true, 0.5},
                                         Source{Dtype::fp32, 16, true, 0.5}, Source{Dtype::bf16, 64, false, 0.5},
                                         Source{Dtype::fp16, 40, false, 0.9}));

// Sets that have nothing to do with the truth: what is reported is measured.
TEST_P(AnySet, IsReadExactly) {
  const Source& s = GetParam();
  Case c = make_case(9, 301, s.headdim_v, s.dtype);
  c.problem.batch = 2;
  c.problem.nheads = 2;
  c.problem.nheads_k = 1;
  c.problem.causal = Causal::bottom_right;
  std::mt19937 random(7);
  std::bernoulli_distribution seen(s.share);
  std::vector<double> table(std::size_t{4} * 9 * 301);
  for (double& w : table) w = seen(random) ? 1 : 0;
  std::fill_n(table.begin() + 301, 301, 0.0);  // a row that sees nothing
  const auto weight = [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    return table[static_cast<std::size_t>(((b * 2 + h) * 9 + i) * 301 + j)];
  };
  TableKernel kernel(weight, s.offers_lse);
  const RecoveredMask mask = recover_mask(kernel, c);
  expect_weights(mask, weight, 0, c);
  EXPECT_EQ(mask.launches, mask_launches(c, s.offers_lse));
  const MaskComparison found = compare_mask(c.problem, mask);
  EXPECT_GT(found.counts.missing + found.counts.extra, 0);
  EXPECT_EQ(found.counts.doubled + found.counts.reweighted + found.unreadable_rows + found.hidden_rows, 0);
}

// Keys that weigh twice, or half as much again, among others; only the weights of their rows are no set.
TEST_P(AnySet, WithOtherWeightsIsWeighed) {
  const Source& s = GetParam();
  const Case c = make_case(6, 301, s.headdim_v, s.dtype);
  const auto weight = [](std::int64_t, std::int64_t, std::int64_t i, std::int64_t j) {
    if (i == 1 && (j == 17 || j == 300)) return 2.0;
    if (i == 2 && j == 101) return 1.5;
    if (i == 3 && j >= 64 && j < 70) return 3.0;
    if (i == 4 && j % 50 == 3) return 0.0;
    return 1.0;
  };
  TableKernel kernel(weight, s.offers_lse);
  const RecoveredMask mask = recover_mask(kernel, c);
  expect_weights(mask, weight, 0x1p-7, c);
  const MaskComparison found = compare_mask(c.problem, mask);
  EXPECT_EQ(found.counts.missing, 6);
  EXPECT_EQ(found.counts.extra, 0);
  EXPECT_EQ(found.counts.doubled, 2);
  EXPECT_EQ(found.counts.reweighted, 7);
  EXPECT_EQ(found.wrong_rows, 4);
  ASSERT_EQ(found.first.size(), 4u);
  EXPECT_EQ(found.first[0].doubled, "17, 300");
  EXPECT_EQ(found.first[1].reweighted, "101");
  EXPECT_EQ(found.first[2].reweighted, "64-69");
  EXPECT_EQ(found.first[3].missing, "3, 53, 103, 153, 203, 253");
}

// One key among 8192: what the usual comparison of O cannot see.
TEST(MaskRecovery, OneKeyOfManyInAHandfulOfLaunches) {
  Case c = make_case(2, 8192, 128);
  const auto read = [&](double odd) {
    TableKernel kernel([odd](auto, auto, auto i, auto j) { return i == 1 && j == 4711 ? odd : 1.0; });
    return recover_mask(kernel, c);
  };
  RecoveredMask mask = read(0);
  EXPECT_EQ(mask.launches, 10);  // ceil((ceil(8192 / 7) + 32) / 128)
  MaskComparison found = compare_mask(c.problem, mask);
  EXPECT_EQ(found.counts.missing, 1);
  EXPECT_EQ(found.first_key, 4711);
  EXPECT_EQ(to_string(found.first.front()), "query 1 of batch 0, head 0: missing 4711");

  mask = read(2);
  EXPECT_LE(mask.launches, 14);  // and one over all keys, one over chunks, one over a chunk's keys, one check
  found = compare_mask(c.problem, mask);
  EXPECT_EQ(found.counts.doubled, 1);
  EXPECT_EQ(found.counts.pairs(), 1);
  EXPECT_EQ(to_string(found.first.front()), "query 1 of batch 0, head 0: doubled 4711");
}

TEST(MaskRecovery, TellsWhatIsNoMatterOfKeys) {
  const Case c = make_case(3, 100);
  const auto all = [](auto, auto, auto, auto) { return 1.0; };
  TableKernel beyond(all), wrong_base(all), dead(all);
  beyond.hidden = 28;
  MaskComparison found = compare_mask(c.problem, recover_mask(beyond, c));
  EXPECT_EQ(found.counts.pairs(), 0);
  EXPECT_EQ(found.hidden_rows, 3);
  EXPECT_THAT(to_string(found.first.front()), HasSubstr("denominator holds 28 more"));

  wrong_base.lse_factor = 1.4426950408889634;
  const RecoveredMask mask = recover_mask(wrong_base, c);
  found = compare_mask(c.problem, mask);
  EXPECT_TRUE(found.same());  // the keys are right; LSE is `reference`'s to judge
  EXPECT_EQ(found.lse_rows, 3);
  EXPECT_THAT(to_text("table", mask, found), HasSubstr("LSE is not the sum"));

  dead.dead_columns = 60;  // all but four
  const RecoveredMask unread = recover_mask(dead, c);
  EXPECT_EQ(unread.rows.front().state, MaskRow::State::dead_columns);
  EXPECT_EQ(compare_mask(c.problem, unread).unreadable_rows, 3);
}

// Planted bugs of the CPU kernel, by the keys that follow from what each is.
TEST(MaskRecovery, ShowsThePlantedBugs) {
  Case c = make_case(70, 67);
  c.problem.nheads = 4;
  c.problem.nheads_k = 2;
  c.problem.causal = Causal::bottom_right;
  c.problem.window_left = 20;
  const auto found = [&](const char* id) {
    const std::unique_ptr<Kernel> kernel = make_kernel(std::string("mutant:") + id);
    return compare_mask(c.problem, recover_mask(*kernel, c));
  };
  const MaskComparison left = found("24-window-left-exclusive");
  EXPECT_EQ(left.counts.missing, 4 * (70 - 23));  // rows whose left edge i - 3 - 20 is a key
  EXPECT_EQ(left.counts.pairs(), left.counts.missing);
  EXPECT_EQ(to_string(left.first.front()), "query 23 of batch 0, head 0: missing 0");
  EXPECT_EQ(found("20-causal-without-offset").first.front().extra, "0");
  const MaskComparison never = found("22-never-causal");
  EXPECT_EQ(never.first.front().extra, "0-66");
  EXPECT_EQ(never.counts.missing + never.counts.doubled, 0);
  EXPECT_EQ(found("71-heads-by-remainder").foreign_rows, 2 * 67);  // heads 1 and 2; three rows see nothing
  EXPECT_GT(found("15-tail-of-v-not-zeroed").unreadable_rows, 0);
  EXPECT_TRUE(found("scale-one-percent-off").same());
}

TEST(MaskRecovery, ReadsOneBatchEntryAndHead) {
  Case c = make_case(20, 30);
  c.problem.batch = 3;
  c.problem.nheads = c.problem.nheads_k = 2;
  TableKernel kernel([](auto b, auto h, auto i, auto j) { return b == 2 && h == 1 && i == 4 && j == 5 ? 0.0 : 1.0; });
  MaskComparison found = compare_mask(c.problem, recover_mask(kernel, c));
  EXPECT_EQ(found.rows, 120);
  EXPECT_EQ(found.worst_batch, 2);
  EXPECT_EQ(found.worst_head, 1);
  MaskOptions options;
  options.batch = 2;
  options.head = 1;
  found = compare_mask(c.problem, recover_mask(kernel, c, options));
  EXPECT_EQ(found.rows, 20);
  EXPECT_EQ(found.counts.missing, 1);
  options.head = 0;
  EXPECT_TRUE(compare_mask(c.problem, recover_mask(kernel, c, options)).same());
}

TEST(MaskRecovery, RefusesWhatItHasNoRoomFor) {
  TableKernel kernel([](auto, auto, auto, auto) { return 1.0; });
  const auto message = [&](const Case& c, const MaskOptions& options) -> std::string {
    try {
      recover_mask(kernel, c, options);
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(make_case(8192, 8193), {}),
            "mask: 1 x 8192 x 8193 pairs of a query and a key are more than 67108864; choose --mask-batch and "
            "--mask-head, or shorter sequences");
  MaskOptions options;
  options.batch = 1;
  EXPECT_EQ(message(make_case(4, 4), options), "mask_batch: 1 is outside 0 to 0");
  options = {};
  options.head = -1;
  EXPECT_EQ(message(make_case(4, 4), options), "mask_head: -1 is outside 0 to 0");
}

// Tags nest, attributes are quoted and nothing is left unescaped: all that a reader of XML insists on here.
bool well_formed(const std::string& svg) {
  std::vector<std::string> open;
  for (std::size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at)) {
    const std::size_t end = svg.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = svg.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string::npos || std::count(tag.begin(), tag.end(), '"') % 2 != 0) return false;
    const std::string name = tag.substr(tag[0] == '/' ? 1 : 0, tag.find_first_of(" /", 1) - (tag[0] == '/' ? 1 : 0));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != name) return false;
      open.pop_back();
    } else if (tag[0] != '?' && tag.back() != '/') {
      open.push_back(name);
    }
    at = end;
  }
  for (std::size_t at = svg.find('&'); at != std::string::npos; at = svg.find('&', at + 1))
    if (svg.compare(at, 4, "&lt;") != 0 && svg.compare(at, 4, "&gt;") != 0 && svg.compare(at, 5, "&amp;") != 0 &&
        svg.compare(at, 6, "&quot;") != 0)
      return false;
  return open.empty();
}

TEST(MaskSvg, IsWellFormedAndKeepsEveryDifferenceVisible) {
  for (const Case& c : {make_case(300, 1500, 128, Dtype::fp32), make_case(5, 7), make_case(1, 2000), make_case(3, 0),
                        make_case(0, 3)}) {
    const Problem& p = c.problem;
    TableKernel kernel([&](auto, auto, auto i, auto j) { return i == p.seqlen_q / 2 && j == 5 ? 0.0 : 1.0; });
    const RecoveredMask mask = recover_mask(kernel, c);
    const MaskComparison found = compare_mask(p, mask);
    const std::string svg = mask_svg("a<b>&\"c\"", c, mask, found);
    EXPECT_TRUE(well_formed(svg)) << svg.substr(0, 2000);
    EXPECT_THAT(svg, HasSubstr("a&lt;b&gt;&amp;&quot;c&quot;"));
    EXPECT_LT(svg.size(), 200'000u);
    const bool differs = p.seqlen_q > 0 && p.seqlen_k > 5;
    EXPECT_EQ(found.counts.missing, differs ? 1 : 0);
    EXPECT_EQ(svg.find("fill=\"#e0201b\"/>") != std::string::npos, differs) << command_line(c);
  }
  EXPECT_FALSE(well_formed("<svg><g></svg>"));
  EXPECT_FALSE(well_formed("<svg>a & b</svg>"));
}

TEST(MaskReport, JsonNamesTheFirstDifference) {
  const Case c = make_case(4, 40);
  TableKernel kernel([](auto, auto, auto i, auto j) { return i == 2 && j > 30 && j < 35 ? 0.0 : 1.0; });
  const RecoveredMask mask = recover_mask(kernel, c);
  const nlohmann::ordered_json json = to_json(mask, compare_mask(c.problem, mask));
  EXPECT_EQ(json["launches"], 1);
  EXPECT_EQ(json["missing"], 4);
  EXPECT_EQ(json["first"]["query"], 2);
  EXPECT_EQ(json["first"]["key"], 31);
  EXPECT_EQ(json["first"]["missing"], "31-34");
}

}  // namespace
}  // namespace attest
