// What a CTA's program moves, counted from the addresses its instructions touch.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "attest/simulator/expand_bulk.h"

namespace attest {

/// Times shared memory's 32 banks of 4 bytes are read or written for one warp instruction: lanes go in groups whose
/// bytes fill a wavefront (8 lanes of 16 bytes, 16 of 8, 32 of 4 or fewer); a group takes as many wavefronts as the
/// bank with the most distinct words; the same word is free. Two groups of a load are one where each two lanes of 16
/// bytes, or four of 8, read the same 16. Equal to an H200's counter in every pattern of docs/results/h200-banks.md.
int wavefronts(const SharedAccess& access);
/// Wavefronts if no two lanes met in a bank.
int ideal_wavefronts(const SharedAccess& access);

/// What a cp.async takes by way of L1, as an H200's counters have it (docs/results/h200-banks.md).
struct CopyCost {
  int sectors = 0, wavefronts = 0;
};
/// `to` is what its lanes write, 16, 8 or 4 bytes each; `from` where each lane reads, in bytes; those of them that are
/// not in `present` write zeros, or, where `stores_zeros`, are left to a store.
///
/// 16 bytes: two lanes share a 32-byte sector, one request and 32 bytes from L2, if the sector's halves go to one
/// sector of shared memory. A wavefront moves sectors of one 128-byte line to one line of shared memory, each sector
/// once, whose chunks lie alike: with the same two low bits of (global / 16) ^ (shared / 16), and both halves of each
/// or the same one. Of lanes that write one place one counts. Where some write zeros, so many more as storing all
/// lanes' bytes would take, and one for each further row that eight lanes with zeros among them read. Fewer bytes: each
/// sector once, and a wavefront for each stretch of memory that is read, if those are more than the places need.
CopyCost copy_cost(const SharedAccess& to, std::span<const std::int64_t, 32> from, std::uint32_t present,
                   bool stores_zeros = false);

/// Of copies, as they are, and what they would be if all their lanes wrote zeros, or all read; zeros that are stores of
/// their own stay beside those.
struct CopiedWavefronts {
  std::int64_t all = 0, as_zeros = 0, as_whole = 0;
  std::int64_t in_part = 0, idle_lanes = 0;  // copies that not all of their lanes read, and the lanes that do not

  CopiedWavefronts& operator+=(const CopiedWavefronts& other);
  CopiedWavefronts& operator*=(std::int64_t times);
  friend bool operator==(const CopiedWavefronts&, const CopiedWavefronts&) = default;
};

struct Counts {
  std::int64_t smem_wavefronts = 0, smem_wavefronts_ideal = 0;
  // Index: SharedAccess::Kind. The totals leave TMA's out, as the hardware's counter does.
  std::array<std::int64_t, SharedAccess::num_kinds> wavefronts_by_kind{}, ideal_by_kind{};
  // the most wavefronts of one warp instruction for each that it would take without conflicts: n of an n-way conflict
  std::array<std::int64_t, SharedAccess::num_kinds> ways_by_kind{};
  std::array<std::int64_t, 4> global_bytes{};  // by operand: bytes asked for (Q, K, V) or written (O)
  // Of 32 bytes, that each warp instruction asks for; what is read below 16 bytes comes through L1, a sector once a
  // step.
  std::array<std::int64_t, 4> global_sectors{};
  // by operand: of copies of 16 bytes by cp.async, with the zeros beside them, and without conflicts
  std::array<CopiedWavefronts, 4> copied{}, copied_ideal{};
  std::int64_t lse_bytes = 0;     // in whole sectors
  std::int64_t atomic_bytes = 0;  // a sector each way for each one
  std::int64_t matrix_steps = 0;  // 16 x 16 blocks of one matrix step: 16 * 16 * k_step multiply-adds each
  std::int64_t exponentials = 0;  // of scores, masked ones included
  std::int64_t copies = 0;        // warp instructions that fill shared memory
  std::int64_t barriers = 0;      // a warp
  std::int64_t key_tiles = 0, masked_key_tiles = 0;

  Counts& operator+=(const Counts& other);
  friend Counts operator*(Counts counts, std::int64_t times);
  friend bool operator==(const Counts&, const Counts&) = default;
};

/// Shared-memory wavefronts of one kind of access.
struct AccessWavefronts {
  std::string_view use, instruction;  // "fill", "cp.async"
  std::int64_t wavefronts = 0, ideal = 0, ways = 1;
  bool in_total = true;  // TMA's are not, nor in the hardware's counter
};
/// Of each kind that occurs, in the order of SharedAccess::Kind.
std::vector<AccessWavefronts> wavefronts_by_access(const Counts& counts);

/// Where tensors lie, as far as sectors depend on it. By operand.
struct GlobalLayout {
  std::array<std::int64_t, 4> row_stride_bytes{};
  std::array<std::int64_t, 4> base{};               // of the head, in bytes; only its value mod 128 matters
  std::int64_t packed_heads = 1;                    // whose rows of Q and O alternate
  std::array<std::int64_t, 4> head_stride_bytes{};  // of packed heads

  std::int64_t row(std::size_t operand, std::int64_t index) const {
    const bool packed = packed_heads > 1 && head_stride_bytes[operand] != 0;
    return base[operand] + (packed ? index / packed_heads * row_stride_bytes[operand] +
                                         index % packed_heads * head_stride_bytes[operand]
                                   : index * row_stride_bytes[operand]);
  }
};

/// Counts programs of one plan; remembers the steps it has seen, so that a long sequence costs no more than its list.
class Counter {
 public:
  Counter(const KernelPlan& plan, const GlobalLayout& layout) : plan_(plan), layout_(layout) {}
  Counts count(const Program& program);
  /// The same without a list: counts the work of one CTA.
  Counts count(const Work& work) { return count(record(plan_, work)); }

 private:
  const Counts& of_step(const Work& work, const Step& step, int warp);
  KernelPlan plan_;
  GlobalLayout layout_;
  std::unordered_map<std::uint64_t, Counts> seen_;
};

}  // namespace attest
