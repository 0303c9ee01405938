// A C interface for ctypes: one call of the sm80 forward or of the unfused baseline, prepared once and launched as
// often as one likes.
#include <exception>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "attest/gpu/unfused.h"
#include "attest/plan/catalog.h"
#include "attest/problem/case.h"
#include "attest/problem/error.h"
#include "attest/sm80/ablation.h"
#include "attest/sm80/sm80_forward.h"

namespace {

using namespace attest;

std::string error;  // of the last call that failed

/// A case whose text does not say num_splits gets as many as suit the device.
Case read(const char* case_json) {
  Case c = case_from_json_text(case_json);
  if (!nlohmann::json::parse(case_json).contains("num_splits")) c.num_splits = sm80::choose_splits(c, open_device());
  return c;
}

constexpr std::string_view unfused = "unfused";

using Call = std::function<void(cudaStream_t)>;

/// The call as the kernel of that name launches it: sm80, an ablation of it, or unfused.
Call prepared(std::string_view kernel, const Case& c, const ForwardArgs& args, void* workspace) {
  if (kernel == unfused) {
    const std::shared_ptr<DeviceForward> forward = make_unfused();
    if (const auto why = forward->unsupported(c, open_device())) throw InvalidInput("kernel", unfused, *why);
    return [=](cudaStream_t stream) { forward->launch(c, args, workspace, stream); };
  }
  const sm80::ForwardParams params = sm80::make_params(c, args, workspace);
  if (kernel == "sm80") return [=](cudaStream_t stream) { sm80::launch_forward(c, params, stream); };
  for (const NamedAblation& named : sm80_ablations)
    if (named.name == kernel)
      return
          [=, ablation = named.ablation](cudaStream_t stream) { sm80::launch_ablation(c, params, ablation, stream); };
  throw InvalidInput("kernel", kernel, "is none of sm80, its ablations and unfused");
}

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

/// -1 on failure.
int attest_num_splits(const char* case_json) {
  return guarded([&] { return static_cast<int>(read(case_json).num_splits); }, -1);
}

long long attest_workspace_bytes(const char* kernel, const char* case_json) {
  return guarded(
      [&] {
        const Case c = read(case_json);
        return static_cast<long long>(kernel == unfused ? make_unfused()->workspace_bytes(c, open_device())
                                                        : sm80::workspace_bytes(c));
      },
      -1LL);
}

/// Q, K, V and O lie as the case's layout says; with a page size, K's and V's pages are those of `page_table`, as many
/// a batch entry as its keys take. Null on failure. Lives until the process ends.
void* attest_open(const char* kernel, const char* case_json, void* q, void* k, void* v, void* o, float* lse,
                  void* workspace, const std::int32_t* page_table) {
  return guarded(
      [&]() -> void* {
        const Case c = read(case_json);
        const Problem& p = c.problem;
        ForwardArgs args;
        args.q = strides_of(c.layout, p.seqlen_q, p.nheads, p.headdim);
        const std::int64_t page_size = c.layout.page_size, key_rows = page_size != 0 ? page_size : p.seqlen_k;
        args.k = strides_of(c.layout, key_rows, p.nheads_k, p.headdim);
        args.v = strides_of(c.layout, key_rows, p.nheads_k, p.headdim_v);
        if (page_size != 0) {
          args.page_table = page_table;
          args.page_size = page_size;
          args.pages_per_sequence = (p.seqlen_k + page_size - 1) / page_size;
        }
        args.o = strides_of(c.layout, p.seqlen_q, p.nheads, p.headdim_v);
        args.q.data = q, args.k.data = k, args.v.data = v, args.o.data = o;
        args.lse = lse;
        return new Call(prepared(kernel, c, args, workspace));
      },
      nullptr);
}

/// 0, or -1 on failure. Does not wait.
int attest_launch(const void* call, void* stream) {
  return guarded(
      [&] {
        (*static_cast<const Call*>(call))(static_cast<cudaStream_t>(stream));
        return 0;
      },
      -1);
}
}
