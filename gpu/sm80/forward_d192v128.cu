#include "forward_kernel.cuh"

namespace attest::sm80 {
template const void* forward_function<Dtype::fp16, Sm80Tile::d192v128, Sm80Kind::fast>();
template const void* forward_function<Dtype::bf16, Sm80Tile::d192v128, Sm80Kind::fast>();
}  // namespace attest::sm80
