#include "attest/gpu/reference64.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "attest/gpu/cuda_error.h"
#include "attest/gpu/device.h"
#include "attest/reference/attends.h"
#include "attest/reference/key_range.h"
#include "rows.h"

namespace attest {
namespace {

using reference64::Intervals;
using reference64::RowCall;

// What the rows read and write, each list in memory of its own for the length of a call.
class Lists {
 public:
  template <class T>
  const T* upload(const std::vector<T>& values) {
    if (values.empty()) return nullptr;
    std::byte* const to = allocate(values.size() * sizeof(T));
    cuda_check(cudaMemcpy(to, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
    return reinterpret_cast<const T*>(to);
  }
  const float* upload_floats(const Tensor& tensor) {
    std::vector<float> values(tensor.values.size());
    std::transform(tensor.values.begin(), tensor.values.end(), values.begin(),
                   [](double x) { return static_cast<float>(x); });  // which every input is
    return upload(values);
  }
  /// As many numbers as the tensor has, all 0; null where it is empty.
  double* zeros_like(const Tensor& tensor) {
    const std::size_t bytes = tensor.values.size() * sizeof(double);
    if (bytes == 0) return nullptr;
    std::byte* const zeros = allocate(bytes);
    cuda_check(cudaMemset(zeros, 0, bytes), "cudaMemset");
    return reinterpret_cast<double*>(zeros);
  }
  std::byte* allocate(std::size_t bytes) {
    auto& memory = memory_.emplace_back(std::make_unique<DeviceMemory>());
    memory->reserve(bytes);
    return memory->data();
  }
  static void download(const double* from, Tensor& to) {
    if (from == nullptr) return;
    cuda_check(cudaMemcpy(to.values.data(), from, to.values.size() * sizeof(double), cudaMemcpyDeviceToHost),
               "cudaMemcpy");
  }

 private:
  std::vector<std::unique_ptr<DeviceMemory>> memory_;
};

reference64::Rounding rounding_of(const Numerics& n) {
  return {.u_S = n.u_S,
          .u_P = n.u_P,
          .a_P = n.a_P,
          .min_normal_P = n.min_normal_P,
          .u_acc = n.u_acc,
          .eps_exp = n.eps_exp,
          .eps_tanh = n.eps_tanh,
          .u_out = n.u_out,
          .floor_out = n.floor_out,
          .lse_max_roundings = n.lse_max_roundings,
          .max_P = n.max_P,
          .chain = n.chain,
          .smallest_tile = n.smallest_tile,
          .num_splits = n.num_splits,
          .normalises_first = n.normalises_first};
}

std::vector<int> documents_of(const Problem& p) {
  std::vector<int> document;
  for (std::size_t d = 0; d < p.documents.size(); ++d)
    document.insert(document.end(), static_cast<std::size_t>(p.documents[d]), static_cast<int>(d));
  return document;
}

std::vector<Intervals> intervals_of(const Problem& p) {
  constexpr std::int64_t rows = reference64::rows_per_strip;
  std::vector<Intervals> all;
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t first = 0; first < p.seqlen_q; first += rows) {
      Intervals& strip = all.emplace_back();
      int at = 0;
      for (const KeyRange& part : key_ranges_of_rows(p, b, first, std::min(first + rows, queries_of(p, b)))) {
        strip.edges[at++] = static_cast<int>(part.begin);
        strip.edges[at++] = static_cast<int>(part.end);
      }
    }
  return all;
}

void describe(const Problem& p, const Inputs& inputs, Lists& lists, RowCall& call) {
  call.batch = static_cast<int>(p.batch);
  call.nheads = static_cast<int>(p.nheads);
  call.nheads_k = static_cast<int>(p.nheads_k);
  call.seqlen_q = static_cast<int>(p.seqlen_q);
  call.seqlen_k = static_cast<int>(p.seqlen_k);
  call.headdim = static_cast<int>(p.headdim);
  call.headdim_v = static_cast<int>(p.headdim_v);
  call.causal = p.causal != Causal::none;
  call.top_left = p.causal == Causal::top_left;
  call.left = p.window_left;
  call.right = p.window_right;
  call.prefix = p.prefix;
  call.softcap = static_cast<float>(p.softcap);
  call.is_fp8 = is_fp8(p.dtype);
  call.q = lists.upload_floats(inputs.q);
  call.k = lists.upload_floats(inputs.k);
  call.v = lists.upload_floats(inputs.v);
  std::vector<int> queries, keys;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    queries.push_back(static_cast<int>(queries_of(p, b)));
    keys.push_back(static_cast<int>(keys_of(p, b)));
  }
  call.queries = lists.upload(queries);
  call.keys = lists.upload(keys);
  call.document = lists.upload(documents_of(p));
  call.intervals = lists.upload(intervals_of(p));

  std::vector<double> score_scale(static_cast<std::size_t>(p.batch * p.nheads_k),
                                  static_cast<float>(effective_softmax_scale(p)));
  std::vector<double> v_scale(score_scale.size(), 1);
  for (std::size_t at = 0; call.is_fp8 && at < v_scale.size(); ++at) {
    score_scale[at] *= inputs.q_descale.values[at] * inputs.k_descale.values[at];
    v_scale[at] = inputs.v_descale.values[at];
  }
  call.score_scale = lists.upload(score_scale);
  call.v_scale = lists.upload(v_scale);
  call.sink = p.sink ? lists.upload(inputs.sink.values) : nullptr;
  call.slopes = p.alibi ? lists.upload(inputs.alibi_slopes.values) : nullptr;
  call.bias = p.bias != Bias::none ? lists.upload_floats(inputs.bias) : nullptr;
  call.bias_per_batch = p.bias == Bias::bhqk || p.bias == Bias::bqk;
  call.bias_per_head = p.bias == Bias::bhqk || p.bias == Bias::hqk;
}

// Enough CTAs to fill the device, unless their rows of scores would take too much of its memory.
int ctas_for(const Problem& p, const DeviceLimits& device) {
  constexpr int ctas_per_sm = 4;
  const auto most_memory = static_cast<std::size_t>(device.memory_bytes / 4);
  const std::size_t for_one = std::max<std::size_t>(1, reference64::scratch_bytes(static_cast<int>(p.seqlen_k), 1));
  const auto most = static_cast<std::int64_t>(std::max<std::size_t>(1, most_memory / for_one));
  return static_cast<int>(
      std::min({std::int64_t{ctas_per_sm} * device.num_sms, most, p.batch * p.nheads * p.seqlen_q}));
}

}  // namespace

Truth forward_with_budget_on_gpu(const Problem& problem, const Inputs& inputs, const Numerics& numerics,
                                 bool statistical) {
  const DeviceLimits device = open_device();
  Truth truth = empty_truth(problem, inputs, numerics, statistical);
  Lists lists;
  RowCall call{};
  describe(problem, inputs, lists, call);
  call.rounding = rounding_of(numerics);
  call.o = lists.zeros_like(truth.forward.o);
  call.lse = lists.zeros_like(truth.forward.lse);
  call.o_bound = lists.zeros_like(truth.o_bound);
  call.lse_bound = lists.zeros_like(truth.lse_bound);
  call.o_variance = lists.zeros_like(truth.o_variance);
  call.lse_variance = lists.zeros_like(truth.lse_variance);
  call.roundings = lists.zeros_like(truth.roundings);
  call.num_ctas = ctas_for(problem, device);
  call.scratch = reinterpret_cast<double*>(lists.allocate(reference64::scratch_bytes(call.seqlen_k, call.num_ctas)));
  const Stream stream;
  cuda_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // what was copied is there before the stream begins
  reference64::launch_rows(call, stream.get());
  cuda_check(cudaStreamSynchronize(stream.get()), "reference64");
  Lists::download(call.o, truth.forward.o);
  Lists::download(call.lse, truth.forward.lse);
  Lists::download(call.o_bound, truth.o_bound);
  Lists::download(call.lse_bound, truth.lse_bound);
  Lists::download(call.o_variance, truth.o_variance);
  Lists::download(call.lse_variance, truth.lse_variance);
  Lists::download(call.roundings, truth.roundings);
  return truth;
}

}  // namespace attest
