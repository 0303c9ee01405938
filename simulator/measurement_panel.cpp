#include "attest/simulator/measured_call.h"

namespace attest {
namespace {

struct Shape {
  std::int64_t batch, nheads, seqlen, headdim;
};

class Panel {
 public:
  /// A call of the sm_80 kernel in bf16: [batch, nheads on nheads_k, seqlen, headdim], changed by `change`.
  template <class Change>
  void add(std::string_view mechanism, std::int64_t batch, std::int64_t nheads, std::int64_t nheads_k,
           std::int64_t seqlen, std::int64_t headdim, Change change) {
    MeasuredCall& call = calls.emplace_back();
    call.mechanism = mechanism;
    call.kernel = "sm80";
    Problem& p = call.c.problem;
    p.dtype = Dtype::bf16;
    p.batch = batch, p.nheads = nheads, p.nheads_k = nheads_k;
    p.seqlen_q = p.seqlen_k = seqlen;
    p.headdim = p.headdim_v = headdim;
    change(call);
  }
  void add(std::string_view mechanism, std::int64_t batch, std::int64_t nheads, std::int64_t seqlen,
           std::int64_t headdim) {
    add(mechanism, batch, nheads, nheads, seqlen, headdim, [](MeasuredCall&) {});
  }
  std::vector<MeasuredCall> calls;
};

void causal(MeasuredCall& call) { call.c.problem.causal = Causal::bottom_right; }

void add_lengths_and_heads(Panel& panel) {
  panel.add("long", 1, 16, 16384, 128);
  panel.add("long", 1, 2, 65536, 128);
  panel.add("long", 1, 8, 32768, 64);
  panel.add("heads", 4, 16, 4096, 128);
  panel.add("heads", 1, 64, 8192, 128);
  panel.add("heads", 32, 16, 512, 128);
  panel.add("heads", 8, 16, 2048, 128);
  panel.add("heads", 4, 32, 4096, 64);
  panel.add("heads", 16, 32, 1024, 64);
  panel.add("heads", 1, 32, 2048, 64);
  for (const auto [batch, nheads, seqlen, headdim] :
       {Shape{4, 16, 4096, 128}, Shape{1, 16, 16384, 128}, Shape{1, 64, 8192, 128}, Shape{32, 16, 512, 128},
        Shape{4, 32, 4096, 64}, Shape{16, 32, 1024, 64}, Shape{2, 8, 4096, 256}})
    panel.add("causal", batch, nheads, nheads, seqlen, headdim, causal);
}

void add_windows(Panel& panel) {
  const auto window = [&panel](std::int64_t batch, std::int64_t nheads, std::int64_t seqlen, std::int64_t headdim,
                               std::int64_t left, std::int64_t right) {
    panel.add("window", batch, nheads, nheads, seqlen, headdim, [=](MeasuredCall& call) {
      call.c.problem.window_left = left;
      call.c.problem.window_right = right;
      if (right == 0) causal(call);
    });
  };
  window(4, 16, 4096, 128, 511, 0);
  window(1, 16, 16384, 128, 4095, 0);
  window(1, 32, 8192, 64, 1024, 1024);
  window(1, 64, 8192, 128, 128, 128);
}

void add_head_dimensions(Panel& panel) {
  for (const std::int64_t headdim : {32, 72, 80, 96, 100, 120, 129, 160, 192, 256})
    panel.add("headdim", 2, 16, 2048, headdim);
  panel.add("headdim", 2, 16, 16, 4096, 192, [](MeasuredCall& call) { call.c.problem.headdim_v = 128; });
  panel.add("ragged", 1, 64, 1000, 128);
  panel.add("ragged", 4, 16, 3001, 128);
  panel.add("ragged", 1, 64, 64, 1000, 64, causal);
  panel.add("ragged", 4, 16, 16, 100, 128, [](MeasuredCall& call) { call.c.problem.seqlen_k = 5000; });
}

void add_groups(Panel& panel) {
  const auto plain = [](MeasuredCall&) {};
  panel.add("gqa", 4, 32, 8, 4096, 128, plain);
  panel.add("gqa", 4, 32, 8, 4096, 128, causal);
  panel.add("gqa", 1, 64, 8, 8192, 128, causal);
  panel.add("gqa", 2, 32, 1, 4096, 64, plain);
}

void add_decoding(Panel& panel) {
  const auto decode = [&panel](std::string_view mechanism, std::int64_t batch, std::int64_t nheads,
                               std::int64_t nheads_k, std::int64_t keys, std::int64_t splits, std::int64_t page_size,
                               std::int64_t queries = 1) {
    panel.add(mechanism, batch, nheads, nheads_k, keys, 128, [=](MeasuredCall& call) {
      call.c.problem.seqlen_q = queries;
      call.c.num_splits = splits;
      call.c.layout.page_size = page_size;
    });
  };
  decode("decode", 64, 32, 32, 2048, 1, 0);
  decode("decode", 64, 32, 8, 4096, 1, 0);
  decode("decode", 16, 32, 32, 8192, 1, 0, 4);
  decode("split", 4, 64, 8, 65536, 8, 0);
  decode("split", 1, 32, 32, 32768, 16, 0);
  decode("split", 1, 16, 16, 8192, 4, 0, 512);
  decode("paged", 16, 32, 8, 8192, 1, 128);
  decode("paged", 16, 32, 32, 4096, 1, 16);
  decode("paged", 2, 16, 16, 2048, 1, 256, 2048);
}

void add_cases(Panel& panel) {
  const auto changed = [&panel](std::string_view mechanism, auto change) {
    panel.add(mechanism, 2, 16, 16, 4096, 128, change);
  };
  changed("lengths", [](MeasuredCall& call) {
    Problem& p = call.c.problem;
    p.batch = 5;
    p.varlen_q = p.varlen_k = {4096, 100, 2500, 1, 3333};
    causal(call);
  });
  changed("lengths", [](MeasuredCall& call) { call.c.problem.seqused_k = {4096, 1500}; });
  changed("scores", [](MeasuredCall& call) { call.c.problem.softcap = 50; });
  changed("scores", [](MeasuredCall& call) { call.c.problem.alibi = true, causal(call); });
  changed("scores", [](MeasuredCall& call) { call.c.problem.prefix = 1000, causal(call); });
  changed("scores", [](MeasuredCall& call) { call.c.problem.documents = {1000, 96, 3000}, causal(call); });
  changed("layout", [](MeasuredCall& call) { call.c.layout.order = Layout::Order::bhsd; });
  changed("layout", [](MeasuredCall& call) { call.c.layout.row_gap = 4; });
}

/// A mechanism taken away by force, in kernels of their own: conflicts and spill as many as a CTA can have of them.
void add_ablations(Panel& panel) {
  const auto ablated = [&panel](std::string_view mechanism, std::string_view kernel) {
    for (const auto [batch, nheads, seqlen, headdim] :
         {Shape{4, 16, 4096, 128}, Shape{1, 64, 8192, 128}, Shape{32, 16, 512, 128}})
      for (const Causal mask : {Causal::none, Causal::bottom_right})
        panel.add(mechanism, batch, nheads, nheads, seqlen, headdim, [=](MeasuredCall& call) {
          call.kernel = kernel;
          call.c.problem.causal = mask;
        });
  };
  ablated("forced conflicts", "sm80-no-swizzle");
  ablated("forced spill", "sm80-spill");
  ablated("synchronous", "sm80-sync-copies");
  ablated("no skipping", "sm80-no-skip");
}

void add_unfused(Panel& panel) {
  for (const auto [batch, nheads, seqlen, headdim] :
       {Shape{4, 16, 2048, 128}, Shape{1, 8, 1024, 128}, Shape{4, 32, 1024, 64}, Shape{1, 8, 8192, 64}})
    panel.add("unfused", batch, nheads, nheads, seqlen, headdim, [](MeasuredCall& call) { call.kernel = "unfused"; });
}

}  // namespace

std::vector<MeasuredCall> measurement_panel() {
  Panel panel;
  add_lengths_and_heads(panel);
  add_windows(panel);
  add_head_dimensions(panel);
  add_groups(panel);
  add_decoding(panel);
  add_cases(panel);
  add_ablations(panel);
  add_unfused(panel);
  return std::move(panel.calls);
}

}  // namespace attest
