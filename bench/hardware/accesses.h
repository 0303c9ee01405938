// One warp instruction on shared memory, lane by lane, issued again and again by a kernel of its kind.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

namespace attest::hardware {

/// Addresses are bytes: shared ones from the start of the CTA's memory, global ones, of copies alone, from a buffer's.
struct LaneAddresses {
  std::uint32_t shared[32], global[32];
  std::uint32_t active = ~0u;   ///< lanes whose predicate is true; of a matrix instruction those that have an address
  std::uint32_t present = ~0u;  ///< lanes of a copy that read; the others are filled with zeros
};

inline constexpr int kAccessSmemBytes = 48 * 1024;      ///< that addresses may reach
inline constexpr int kAccessGlobalStep = 32 * 1024;     ///< between two issues of a copy, so that L1 has none of it
inline constexpr int kAccessGlobalBytes = 1024 * 1024;  ///< that global addresses may reach

using AccessKernel = void (*)(LaneAddresses lanes, const char* global, std::uint32_t shared_step, int repeats,
                              std::uint32_t* out);

/// An instruction by name, the bytes of a lane, and the kernel that issues it `repeats` times a warp.
struct AccessInstruction {
  const char* name;
  int bytes;
  AccessKernel kernel;
};
std::span<const AccessInstruction> access_instructions();

/// A warp on each of `ctas` CTAs. `global`: kAccessGlobalBytes + repeats * kAccessGlobalStep bytes.
void issue_accesses(const AccessInstruction& instruction, const LaneAddresses& lanes, int ctas, int repeats,
                    const char* global, std::uint32_t* out, cudaStream_t stream);

}  // namespace attest::hardware
