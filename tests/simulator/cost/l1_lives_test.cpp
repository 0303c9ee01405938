// What L1 has evicted between CTAs' starts and finishes, against what CUPTI counted of 82 calls (output_words.csv).
#include "l1_lives.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "attest/plan/catalog.h"
#include "attest/problem/file.h"
#include "attest/simulator/case_counts.h"
#include "attest/simulator/measured_call.h"
#include "attest/simulator/report.h"
#include "measured_rows.h"

namespace attest {
namespace {

using Kind = SmEvent::Kind;

std::vector<SpillAccess> each(SpillAccess::Kind kind, int words) {
  std::vector<SpillAccess> accesses;
  for (int word = 0; word < words; ++word) accesses.push_back({.kind = kind, .word = word});
  return accesses;
}

SmEvent event(Kind kind, int slot) { return {.kind = kind, .slot = slot, .tile = {}}; }

/// Words that a CTA stores as it starts and loads in each key tile.
CtaWords parked(int words) {
  return {each(SpillAccess::Kind::store, words), {}, {}, {}, each(SpillAccess::Kind::load, words), {}};
}

/// So many rows of 256 bytes, side by side.
std::vector<PassingTile> rows(int n) { return {{0, n, 256, 256, false}}; }

double missed(const CtaWords& words, const std::vector<SmEvent>& events, int output_rows, int lines = 480) {
  const std::vector<SmEvents> sms = {{3, events}};
  const FramePlaces places{MemoryMap(load_device("h200")), 18};
  return missed_in_lives(
      words, 4, sms, [&](const StoredTile&) { return rows(output_rows); }, lines, places);
}

TEST(L1Lives, WhoIsAloneMissesNothing) {
  const std::vector<SmEvent> alone = {event(Kind::start, 0),  event(Kind::whole, 0), event(Kind::whole, 0),
                                      event(Kind::finish, 0), event(Kind::start, 0), event(Kind::whole, 0),
                                      event(Kind::finish, 0)};
  EXPECT_EQ(missed(parked(17), alone, 128), 0);
  EXPECT_EQ(missed(parked(17), {}, 128), 0);
  EXPECT_EQ(missed({}, alone, 128), 0);
}

// Of two CTAs the second one finds its words in L1 until the first one's output has passed: all of 17 x 4 lines are
// gone behind 16 MiB of it, where none was beyond what L1 has room for.
TEST(L1Lives, OutputThatPassesDrivesWordsOut) {
  const std::vector<SmEvent> two = {event(Kind::start, 0), event(Kind::start, 1),  event(Kind::whole, 0),
                                    event(Kind::whole, 1), event(Kind::finish, 0), event(Kind::whole, 1),
                                    event(Kind::finish, 1)};
  EXPECT_EQ(missed(parked(17), two, 1), 0);
  const double of_tile = missed(parked(17), two, 256);
  EXPECT_GT(of_tile, 0);
  EXPECT_LT(of_tile, 17 * 4 / 2.);
  EXPECT_NEAR(missed(parked(17), two, 1 << 16), 17 * 4 / 2., 1);  // of one CTA of two
  EXPECT_EQ(missed(parked(0), two, 128), 0);
}

// The CTA that takes a slot stores its words anew, and on its way to key tiles without a mask those of its own.
TEST(L1Lives, WhoStartsStoresItsWords) {
  const std::vector<SmEvent> next = {event(Kind::start, 0), event(Kind::start, 1), event(Kind::finish, 0),
                                     event(Kind::start, 0), event(Kind::whole, 0), event(Kind::masked, 0),
                                     event(Kind::finish, 0)};
  EXPECT_EQ(missed(parked(17), next, 1 << 16), 0);
  CtaWords entering = parked(17);
  entering.enter = entering.start, entering.start.clear();
  EXPECT_EQ(missed(entering, next, 1 << 16), 0);
  EXPECT_EQ(used_words(entering), 17);
  // and what it stores as any run begins, a masked one too
  CtaWords running = entering;
  running.run = running.enter, running.enter.clear();
  running.masked = running.whole;
  EXPECT_EQ(missed(running, next, 1 << 16), 0);
  running.run.clear();  // nobody has stored them: the second run has what the first has read
  EXPECT_EQ(missed(running, next, 1 << 16), 4 * 17 / 2.);
}

// SM reads beyond Q, K and V, in lines a CTA, by kernel and mask, of O by its rows' stride: 4 to 128 heads beside each
// other, or rows side by side.
TEST(L1Lives, MissesAsCounted) {
  const DeviceSpec h200 = load_device("h200");
  struct Of {
    double counted = 0, predicted = 0, most = 0;
    int calls = 0;
  };
  std::map<std::string, Of> all;
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_L1 "/output_words.csv")) {
    const Case c = case_from_json_text(row.at("case"));
    const std::string name(plan_of_kernel(row.at("kernel")));
    const KernelPlan plan = plan_named(name, c, h200);
    const auto& sectors = count_case(c, plan).global_sectors;
    const auto copied =
        static_cast<double>(std::accumulate(sectors.begin(), sectors.begin() + 3, std::int64_t{0}) * 32);
    const SimulationReport r = simulate(c, plan, h200, name);
    const double counted = std::stod(row.at("l1tex__m_xbar2l1tex_read_bytes.sum"));
    const double of_cta = 128.0 * static_cast<double>(r.walk.ctas_with_rows);
    const double lines = (counted - copied) / of_cta, predicted = (r.sm_read_bytes - copied) / of_cta;
    std::printf("%s, %s: %.2f lines, predicted %.2f; %.4f of all bytes\n", row.at("kernel").c_str(),
                command_line(c).c_str(), lines, predicted, r.sm_read_bytes / counted);
    EXPECT_NEAR(predicted, lines, 0.25 * lines + 1);
    Of& of = all[row.at("kernel") + (c.problem.window_left >= 0 ? ", window" : "")];
    of.counted += lines, of.predicted += predicted, ++of.calls;
    of.most = std::max(of.most, std::abs(r.sm_read_bytes / counted - 1));
  }
  struct Reached {
    int calls;
    double lines, most;
  };
  const std::map<std::string, Reached> reached = {{"sm80", {20, 0.986, 0.0005}},
                                                  {"sm80, window", {36, 1.029, 0.0029}},
                                                  {"sm80-no-swizzle", {12, 0.987, 0.0004}},
                                                  {"sm80-no-swizzle, window", {14, 1.083, 0.0013}}};
  ASSERT_EQ(all.size(), reached.size());
  for (const auto& [name, of] : all) {
    std::printf("%s: %d calls, %.3f of the lines, at most %.4f of all bytes off\n", name.c_str(), of.calls,
                of.predicted / of.counted, of.most);
    EXPECT_EQ(of.calls, reached.at(name).calls);
    EXPECT_NEAR(of.predicted / of.counted, reached.at(name).lines, 0.02) << name;
    EXPECT_LT(of.most, reached.at(name).most) << name;
  }
}

}  // namespace
}  // namespace attest
