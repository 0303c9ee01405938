#include "combine_kernel.cuh"

namespace attest::sm80 {
template const void* combine_function<Dtype::fp16>();
template const void* combine_function<Dtype::bf16>();
}  // namespace attest::sm80
