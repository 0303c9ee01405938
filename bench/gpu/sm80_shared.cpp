// A C interface for ctypes: one call of the sm80 forward, prepared once and launched as often as one likes.
#include <exception>
#include <string>

#include "attest/plan/catalog.h"
#include "attest/problem/case.h"
#include "attest/sm80/sm80_forward.h"

namespace {

using namespace attest;

std::string error;  // of the last call that failed

struct Call {
  Case c;
  sm80::ForwardParams params;
};

template <class F>
auto guarded(F f, decltype(f()) failed) -> decltype(f()) {
  try {
    return f();
  } catch (const std::exception& e) {
    error = e.what();
    return failed;
  }
}

}  // namespace

extern "C" {

const char* attest_error() { return error.c_str(); }

long long attest_workspace_bytes(const char* case_json) {
  return guarded([&] { return static_cast<long long>(sm80::workspace_bytes(case_from_json_text(case_json))); }, -1LL);
}

/// Q, K, V and O lie as the case's layout says; null on failure. Lives until the process ends.
void* attest_open(const char* case_json, void* q, void* k, void* v, void* o, float* lse, void* workspace) {
  return guarded(
      [&]() -> void* {
        const Case c = case_from_json_text(case_json);
        const Problem& p = c.problem;
        ForwardArgs args;
        args.q = strides_of(c.layout, p.seqlen_q, p.nheads, p.headdim);
        args.k = strides_of(c.layout, p.seqlen_k, p.nheads_k, p.headdim);
        args.v = strides_of(c.layout, p.seqlen_k, p.nheads_k, p.headdim_v);
        args.o = strides_of(c.layout, p.seqlen_q, p.nheads, p.headdim_v);
        args.q.data = q, args.k.data = k, args.v.data = v, args.o.data = o;
        args.lse = lse;
        return new Call{c, sm80::make_params(c, args, workspace)};
      },
      nullptr);
}

/// 0, or -1 on failure. Does not wait.
int attest_launch(const void* call, void* stream) {
  return guarded(
      [&] {
        const auto& it = *static_cast<const Call*>(call);
        sm80::launch_forward(it.c, it.params, static_cast<cudaStream_t>(stream));
        return 0;
      },
      -1);
}
}
