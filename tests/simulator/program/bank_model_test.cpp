// The bank model against enumeration: for each warp instruction of whole programs, every byte of every lane.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "attest/plan/catalog.h"
#include "attest/plan/launch.h"
#include "attest/simulator/counts.h"

namespace attest {
namespace {

/// Whether the lanes that ask for each 32 bytes need no more than one 16-byte part of memory: of loads, two groups of
/// such lanes go together (docs/results/h200-banks.md).
bool half_is_enough(const SharedAccess& a, int first, int lanes) {
  if (a.kind != SharedAccess::Kind::load_word && a.kind != SharedAccess::Kind::load_staged) return false;
  std::map<int, std::uint32_t> part;
  for (int lane = first; lane < first + lanes; ++lane) {
    if ((a.active >> lane & 1) == 0) continue;
    const std::uint32_t needed = a.address[static_cast<std::size_t>(lane)] / 16;
    if (part.try_emplace(lane * a.bytes / 32, needed).first->second != needed) return false;
  }
  return true;
}

/// Lanes whose bytes fill 128 go together; each byte lies in a word, each word in a bank; a bank gives a word a cycle.
int enumerated(const SharedAccess& a) {
  int total = 0;
  const int group = std::min(32, 128 / std::max(a.bytes, 4));
  for (int first = 0, lanes = group; first < 32; first += lanes) {
    lanes = group < 32 && first % (2 * group) == 0 && half_is_enough(a, first, 2 * group) ? 2 * group : group;
    std::map<std::uint32_t, std::set<std::uint32_t>> words_of_bank;
    std::size_t most = 0;
    for (int lane = first; lane < first + lanes; ++lane)
      for (int byte = 0; (a.active >> lane & 1) != 0 && byte < a.bytes; ++byte) {
        const std::uint32_t at = a.address[static_cast<std::size_t>(lane)] + static_cast<std::uint32_t>(byte);
        auto& words = words_of_bank[at / 4 % 32];
        words.insert(at / 4);
        most = std::max(most, words.size());
      }
    total += static_cast<int>(most);
  }
  return total;
}

struct ComparingSink {
  std::array<std::int64_t, SharedAccess::num_kinds> seen{}, conflicts{};
  int wrong = 0;
  void shared(const SharedAccess& a) {
    const auto kind = static_cast<std::size_t>(a.kind);
    const int expected = enumerated(a);
    ++seen[kind];
    conflicts[kind] += expected - ideal_wavefronts(a);
    wrong += wavefronts(a) != expected;
  }
  void global(const GlobalAccess&) {}
  void bulk_row(Operand, int, int, bool) {}
  void atomic() {}
  void matrix_step() {}
  void exponentials(int, int) {}
};

void compare(const KernelPlan& plan, const Problem& p, ComparingSink& sink) {
  const int before = sink.wrong;
  for (int q = 0; q < num_q_tiles(plan, p); ++q) {
    const Program program = record(plan, make_work(p, q));
    for (std::size_t warp = 0; warp < program.warps.size(); ++warp)
      for (const Step& step : program.warps[warp]) {
        if (plan.producer_warps == 0)
          expand(plan, program.work, step, static_cast<int>(warp), sink);
        else
          expand_warp_specialized(plan, program.work, step, static_cast<int>(warp), sink);
      }
  }
  EXPECT_EQ(sink.wrong, before) << "headdim " << p.headdim << ", swizzled " << plan.swizzled << ", element bytes "
                                << plan.element_bytes;
}

TEST(BankModel, EqualsEnumerationForEveryKindOfAccess) {
  ComparingSink sink;
  for (const bool swizzled : {true, false})
    for (const Dtype dtype : {Dtype::bf16, Dtype::fp32, Dtype::fp8_e4m3})
      for (const int headdim : {32, 40, 64, 72, 80, 96, 128, 192, 256}) {
        Problem p;
        p.nheads = p.nheads_k = 1;
        p.headdim = p.headdim_v = headdim;
        p.seqlen_q = 100, p.seqlen_k = 70;
        p.dtype = dtype;
        for (const NamedPlan& named : named_plans) {
          const Case c{p, {}, Distribution::normal, 0};
          if (named.name == "fa3" && dtype != Dtype::bf16) continue;
          KernelPlan plan = with_layout(named.make(c, {}), c);
          if (plan.invalid() != nullptr) continue;
          plan.swizzled = swizzled;
          compare(plan, p, sink);
          if (named.name != "attest") continue;
          for (const int granule : {8, 4, 2}) {  // as odd strides make it
            if (headdim * plan.element_bytes % granule != 0 || granule < plan.element_bytes) continue;
            plan.copy_bytes_q = plan.copy_bytes_k = plan.copy_bytes_v = plan.copy_bytes_o = granule;
            if (plan.invalid() == nullptr) compare(plan, p, sink);
          }
        }
      }
  for (std::size_t kind = 0; kind < SharedAccess::num_kinds; ++kind) {
    EXPECT_GT(sink.seen[kind], 100) << "kind " << kind;
    std::printf("kind %zu: %lld instructions, %lld wavefronts beyond the ideal\n", kind,
                static_cast<long long>(sink.seen[kind]), static_cast<long long>(sink.conflicts[kind]));
  }
}

}  // namespace
}  // namespace attest
