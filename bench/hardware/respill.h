// A kernel of CTAs that store words of their own again and again, as one does whose registers spill in each key tile.
#pragma once

#include <cstdint>

namespace attest::hardware {

enum class Store {
  local,      ///< local memory, a frame of 160 words
  local_256,  ///< a frame of 256
  global,     ///< the same lines of global memory, wherever the strides say
  registers   ///< that the compiler spills; what it loads back it marks as the last use
};

/// CTAs of 128 threads, two an SM. In each turn a CTA reads 32 KiB of a range that others read too, past L1, and each
/// of its threads stores `words` 4-byte words of its own, 128 bytes a warp, and may load them back.
struct Respill {
  Store store = Store::local;
  int words = 0;  ///< of `registers`: 48, 96, 144 or 176 values
  int turns = 1;
  int parked = 0;  ///< further words that are stored before the first turn and loaded after the last
  int ctas = 264;  ///< 264 at a time
  bool loads = false;
  bool store_once = false;        ///< in the first turn alone
  int behind = 0;                 ///< a word is loaded when so many more have been stored; 0: after all of a turn's
  std::int64_t shared_bytes = 0;  ///< in 8 heads, each read by CTAs that follow each other
  int lag = 0;                    ///< every second CTA comes to its head's tiles so many turns later
  std::int64_t even_bytes = 0;    ///< at the buffer's beginning, that each 22 CTAs read in each turn before the words
  int apart = -1;                 ///< of `local`, if not negative: a word at a time, so many cycles before each
  bool in_turn = false;           ///< no CTA comes to its words before all have read that, and none reads on before
  /// Where global words lie: CTAs of 132 SMs, of their 8 warps.
  std::int64_t sm_stride = 0, warp_stride = 0;
};

/// Runs it as the kernel `probe_respill`. The shared range is at `buffer`, global words from `spill_base` on. Throws
/// std::invalid_argument where what is to go in turn cannot.
void run_respill(const Respill& respill, std::uint8_t* buffer, std::int64_t spill_base);

/// Words of a thread's frame where the compiler spills so many values.
int spilled_words(int values);

}  // namespace attest::hardware
