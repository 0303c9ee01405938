#include "forward_kernel.cuh"

namespace attest::sm80 {
template const void* forward_function<Dtype::fp16, Sm80Tile::d256_short, Sm80Kind::general>();
template const void* forward_function<Dtype::bf16, Sm80Tile::d256_short, Sm80Kind::general>();
}  // namespace attest::sm80
