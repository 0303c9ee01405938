#include "attest/fuzz/truth.h"

#include <fmt/format.h>

#include "attest/problem/error.h"
#include "cuda_kernels.h"

namespace attest {

TruthFunction truth_named(std::string_view name) {
  if (name == "cpu") return forward_with_budget;
  if (name == "gpu") return gpu_truth();
  throw InvalidInput("truth", fmt::format("'{}'", name), "is neither cpu nor gpu");
}

}  // namespace attest
