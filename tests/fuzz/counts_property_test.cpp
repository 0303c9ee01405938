// The counts property can fail: every off-by-one that is planted in what is counted is caught, and by no luck of one
// seed.
#include "attest/fuzz/counts_property.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "attest/fuzz/generators.h"

namespace attest {
namespace {

/// The CTA's range with another window or with another end; the mask and the copies stay right, so that no value can
/// say that a tile is visited for nothing.
struct OneTilePastTheDiagonal : KernelPlan {
  constexpr TileRange range(const Work& w) const {
    TileRange r = tile_range(*this, w);
    if (w.right >= 0 && r.begin < r.end && r.end * tile_n < w.seqlen_k) ++r.end;
    return r;
  }
};
struct OneTileShortOfTheDiagonal : KernelPlan {
  constexpr TileRange range(const Work& w) const {
    TileRange r = tile_range(*this, w);
    if (w.right >= 0 && r.begin + 1 < r.end) --r.end, r.full_end = std::min(r.full_end, r.end);
    return r;
  }
};
template <int left, int right>
struct WindowOff : KernelPlan {
  constexpr TileRange range(Work w) const {
    if (w.left >= 0) w.left = std::max(0, w.left + left);
    if (w.right >= 0 && !w.causal) w.right = std::max(0, w.right + right);
    return tile_range(static_cast<const KernelPlan&>(*this), w);
  }
};
template <Operand x, int more>
struct RowsOff : KernelPlan {
  constexpr int row_limit(Operand of, const Work& w) const {
    const int limit = KernelPlan::row_limit(of, w);
    return of == x ? std::max(0, limit + more) : limit;
  }
};

struct CountMutant {
  const char* id;
  const char* bug;
  CountedKernel kernel;
  bool slides = false;  // it shows only where an edge of the window is one of a tile: windows of every width are tried
};
void PrintTo(const CountMutant& mutant, std::ostream* out) { *out << mutant.id; }

const CountMutant mutants[] = {
    {"tile_skip_one_more", "one key tile past the last that a causal or windowed query tile sees is visited",
     counted_kernel<OneTilePastTheDiagonal>()},
    {"tile_skip_one_less", "the last key tile that it sees is skipped", counted_kernel<OneTileShortOfTheDiagonal>()},
    {"window_left_one_early", "the range begins one key before the window", counted_kernel<WindowOff<1, 0>>(), true},
    {"window_left_one_late", "the range begins one key after the window does", counted_kernel<WindowOff<-1, 0>>(),
     true},
    {"window_right_one_late", "the range ends one key after the window", counted_kernel<WindowOff<0, 1>>(), true},
    {"window_right_one_early", "the range ends one key before the window does", counted_kernel<WindowOff<0, -1>>(),
     true},
    {"ragged_queries_one_more", "a query past the last one is copied", counted_kernel<RowsOff<Operand::q, 1>>()},
    {"ragged_queries_one_less", "the last query is not copied", counted_kernel<RowsOff<Operand::q, -1>>()},
    {"ragged_keys_one_more", "a key past the last one is copied", counted_kernel<RowsOff<Operand::k, 1>>()},
    {"ragged_keys_one_less", "the last key is not copied", counted_kernel<RowsOff<Operand::k, -1>>()},
    {"ragged_values_one_more", "a value past the last one is copied", counted_kernel<RowsOff<Operand::v, 1>>()},
    {"ragged_values_one_less", "the last value is not copied", counted_kernel<RowsOff<Operand::v, -1>>()},
};

constexpr std::uint64_t seeds = 5;
/// Cases that a campaign of `attest mutants`' length puts to this property: 4 in 64 of 20,000.
constexpr int most_cases = 20'000 * 4 / 64;

/// The case with a window of as many keys to the left and right of the diagonal as `k` says.
Case with_window(Case c, std::uint64_t k) {
  const auto keys = static_cast<std::uint64_t>(c.problem.seqlen_k + 1);
  c.problem.causal = Causal::none;
  c.problem.window_left = static_cast<std::int64_t>(k % keys),
  c.problem.window_right = static_cast<std::int64_t>(k * 7 % keys);
  return c;
}

/// As many cases as are looked at until one is refused; 0 if none of them is.
int cases_until_refused(std::uint64_t seed, int most, const CountMutant& mutant, Case& last, Verdict& verdict) {
  int seen = 0;
  for (std::uint64_t k = 0; seen < most; ++k) {
    last = mutant.slides ? with_window(generate_case(seed, k), k) : generate_case(seed, k);
    if (!counts_are_exact(last)) continue;
    ++seen;
    verdict = judge_counts(last, mutant.kernel);
    if (verdict.status != Status::passed) return seen;
  }
  return 0;
}

TEST(CountsProperty, PassesTheRightCount) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Case c;
    Verdict verdict;
    EXPECT_EQ(cases_until_refused(seed, 60, {"none", "", counted_kernel()}, c, verdict), 0)
        << command_line(c) << ": " << verdict.channel << " " << verdict.value << ", expected " << verdict.expected;
  }
}

class EveryCountMutant : public testing::TestWithParam<CountMutant> {};
INSTANTIATE_TEST_SUITE_P(Mutants, EveryCountMutant, testing::ValuesIn(mutants),
                         [](const auto& p) { return std::string(p.param.id); });

TEST_P(EveryCountMutant, IsCaught) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Case c;
    Verdict verdict;
    const int cases = cases_until_refused(seed, most_cases, GetParam(), c, verdict);
    ASSERT_GT(cases, 0) << "seed " << seed << ": " << GetParam().bug;
    std::printf("%-24s seed %d: case %d, %s: %s %.0f, not %.0f\n", GetParam().id, static_cast<int>(seed), cases,
                command_line(c).c_str(), verdict.channel.c_str(), verdict.value, verdict.expected);
    RecordProperty("cases_seed_" + std::to_string(seed), cases);
  }
}

}  // namespace
}  // namespace attest
