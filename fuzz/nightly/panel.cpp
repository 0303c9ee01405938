#include "attest/nightly/panel.h"

#include <vector>

namespace attest {
namespace {

Case case_of(std::int64_t nheads, std::int64_t nheads_k, std::int64_t seqlen_q, std::int64_t seqlen_k,
             std::int64_t headdim, Causal causal) {
  Case c;
  c.problem.nheads = nheads, c.problem.nheads_k = nheads_k;
  c.problem.seqlen_q = seqlen_q, c.problem.seqlen_k = seqlen_k;
  c.problem.headdim = c.problem.headdim_v = headdim;
  c.problem.dtype = Dtype::bf16;
  c.problem.causal = causal;
  validate(c);
  return c;
}

}  // namespace

std::span<const PanelCase> device_panel() {
  static const std::vector<PanelCase> panel = {
      {"prefill-d64-2k", case_of(16, 16, 2048, 2048, 64, Causal::none)},
      {"prefill-d128-4k-causal", case_of(16, 16, 4096, 4096, 128, Causal::bottom_right)},
      {"prefill-d128-2k-gqa", case_of(16, 4, 2048, 2048, 128, Causal::bottom_right)},
      {"decode-d128-16k-gqa", case_of(32, 4, 1, 16384, 128, Causal::none)},
  };
  return panel;
}

std::span<const PanelCase> cpu_panel() {
  static const std::vector<PanelCase> panel = {
      {"prefill-d64-256", case_of(1, 1, 256, 256, 64, Causal::none)},
      {"prefill-d128-200-causal", case_of(1, 1, 200, 200, 128, Causal::bottom_right)},
      {"decode-d128-2k-gqa", case_of(4, 1, 1, 2048, 128, Causal::none)},
  };
  return panel;
}

}  // namespace attest
