#include <algorithm>
#include <string>

#include "experiments.h"
#include "merge.h"

namespace attest::hardware {
namespace {

std::vector<int> gpc_mates(const Bench& bench, int sm) {
  std::vector<int> mates;
  for (int i = 0; i < static_cast<int>(bench.sms.size()); ++i)
    if (bench.sms[i].gpc == bench.sms[sm].gpc) mates.push_back(i);
  return mates;
}

void row(const Bench& bench, const std::string& who, const MergeRun& run) {
  const double drift = run_merge(run, bench.buffer);
  bench.row(who, run.sms.size(), run.sms.back(), run.skew_cycles, run.random_skew ? 1 : 0, run.lines_in_l2 ? 1 : 0,
            run.bulk ? 1 : 0, warm_bytes_an_sm(run), timed_bytes_an_sm(run), drift);
}

void merge_pair(const Bench& bench) {
  // SM 0 beside every other of its GPC, and beside the first of every other GPC
  std::vector<int> partners = gpc_mates(bench, 0);
  for (int sm = 0; sm < static_cast<int>(bench.sms.size()); ++sm)
    if (bench.sms[sm].gpc == sm) partners.push_back(sm);
  for (const int partner : partners) {
    if (partner == 0) continue;
    const char* who = bench.sms[partner].gpc == bench.sms[0].gpc     ? "same_gpc"
                      : bench.sms[partner].side == bench.sms[0].side ? "same_side"
                                                                     : "other_side";
    for (const bool in_l2 : {true, false}) row(bench, who, {.sms = {0, partner}, .lines_in_l2 = in_l2});
  }
  for (const bool bulk : {false, true})
    for (const bool in_l2 : {true, false})
      for (const int skew : {0, 20, 50, 100, 200, 400, 800})
        row(bench, "tpc", {.sms = {0, 1}, .skew_cycles = skew, .lines_in_l2 = in_l2, .bulk = bulk});
}

void merge_group(const Bench& bench) {
  const std::vector<int> gpc = gpc_mates(bench, 0);
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  for (const std::size_t count :
       {std::size_t{1}, std::size_t{2}, std::size_t{4}, std::size_t{6}, std::size_t{8}, gpc.size()})
    groups.emplace_back("gpc", std::vector<int>(gpc.begin(), gpc.begin() + static_cast<std::ptrdiff_t>(count)));
  std::vector<int> side;
  std::vector<int> one_an_gpc;
  std::vector<int> one_a_tpc;
  std::vector<int> all;
  for (int sm = 0; sm < static_cast<int>(bench.sms.size()); ++sm) {
    all.push_back(sm);
    if (bench.sms[sm].side == 0) side.push_back(sm);
    if (bench.sms[sm].gpc == sm) one_an_gpc.push_back(sm);
    if (bench.sms[sm].gpc == bench.sms[0].gpc && sm % 2 == 0) one_a_tpc.push_back(sm);
  }
  groups.emplace_back("one_a_gpc", one_an_gpc);
  groups.emplace_back("one_a_tpc_of_gpc", one_a_tpc);
  groups.emplace_back("side", side);
  groups.emplace_back("all", all);
  for (const auto& [who, sms] : groups)
    for (const bool in_l2 : {true, false})
      for (const int skew : {0, 20, 50, 100, 200, 400, 800})
        row(bench, who, {.sms = sms, .skew_cycles = skew, .random_skew = true, .lines_in_l2 = in_l2});
  for (const int skew : {0, 100, 400})
    row(bench, "all", {.sms = all, .skew_cycles = skew, .random_skew = true, .bulk = true});
}

// Lines of which a request has a part, or that begin in the midst of a row.
void merge_parts(const Bench& bench) {
  struct Rows {
    int bytes, stride, offset;
  };
  for (const int copy_bytes : {16, 8})
    for (const Rows r : {Rows{4096, 4096, 0},
                         {4096, 4096, 16},
                         {4096, 4096, 32},
                         {4096, 4096, 64},
                         {4096, 4096, 96},
                         {32, 128, 0},
                         {64, 128, 0},
                         {64, 128, 32},
                         {64, 128, 64},
                         {96, 128, 0},
                         {96, 128, 32},
                         {192, 256, 0},
                         {192, 256, 64},
                         {128, 256, 64},
                         {256, 512, 16}})
      for (const std::size_t count : {std::size_t{1}, std::size_t{4}})
        for (const bool in_l2 : {true, false}) {
          std::vector<int> sms = gpc_mates(bench, 0);
          sms.resize(count);
          const MergeRun run{.sms = sms,
                             .lines_in_l2 = in_l2,
                             .copy_bytes = copy_bytes,
                             .row_bytes = r.bytes,
                             .row_stride = r.stride,
                             .offset = r.offset};
          run_merge(run, bench.buffer);
          bench.row(copy_bytes, r.bytes, r.stride, r.offset, count, in_l2 ? 1 : 0, warm_bytes_an_sm(run),
                    timed_bytes_an_sm(run));
        }
}

}  // namespace

std::vector<Experiment> merge_experiments() {
  const char* columns =
      "who,sms,last_sm,skew_cycles,random_skew,lines_in_l2,bulk,warm_bytes_an_sm,timed_bytes_an_sm,clock_drift";
  return {{"merge_pair", columns, merge_pair},
          {"merge_group", columns, merge_group},
          {"merge_parts", "copy_bytes,row_bytes,row_stride,offset,sms,lines_in_l2,warm_bytes_an_sm,timed_bytes_an_sm",
           merge_parts}};
}

}  // namespace attest::hardware
