// What each SM gets of L2 when all of them, or some, ask for as much as they can.
#pragma once
#include <vector>

namespace attest::hardware {

/// What a CTA an SM does again and again with 128 KiB of its own, which stay in L2: stores words of local memory,
/// stores each and loads another that L1 has let go of, stores lines of global memory, or copies them by cp.async of 16
/// bytes.
enum class L2Request { local_store, local_store_and_load, store, cp_async };

/// Bytes a clock of each SM, of what is stored and loaded those that are stored, by SM id, while those that `asks`
/// names ask at once; 0 of others. `asks` is as long as the GPU has SMs. Throws std::runtime_error with CUDA's words
/// where a call of it fails.
std::vector<double> l2_shares(L2Request kind, const std::vector<bool>& asks);

}  // namespace attest::hardware
