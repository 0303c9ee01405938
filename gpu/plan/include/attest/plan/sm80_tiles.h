// The tiles that the sm_80 forward is compiled for, and which of them a problem takes. Head dimensions are padded to
// these; what else a case asks for is data.
#pragma once
#include "attest/plan/kernel_plan.h"
#include "attest/problem/problem.h"

namespace attest {

/// By padded head dimension; *_short have one warp's 16 queries a CTA, for decoding.
enum class Sm80Tile : std::uint8_t { d64, d96, d128, d192v128, d192, d256, d128_short, d256_short };
inline constexpr Sm80Tile all_sm80_tiles[] = {Sm80Tile::d64,        Sm80Tile::d96,       Sm80Tile::d128,
                                              Sm80Tile::d192v128,   Sm80Tile::d192,      Sm80Tile::d256,
                                              Sm80Tile::d128_short, Sm80Tile::d256_short};

/// What a kernel is compiled for besides its tile. `fast`: scores are q.k times a positive number, masks are causal or
/// a window, copies are of 16 bytes from rows that follow each other, a tile's rows are one head's. `general`: whatever
/// a case asks for, by flags. Branches that are never taken still cost: they part what the compiler would interleave,
/// and the instruction cache carries them along.
enum class Sm80Kind : std::uint8_t { fast, general };

constexpr bool is_short(Sm80Tile tile) { return tile >= Sm80Tile::d128_short; }

/// 32 queries a warp where O's accumulators leave registers for it. `headdim`s are the padded ones until a problem's
/// are filled in.
constexpr KernelPlan sm80_plan(Sm80Tile tile) {
  KernelPlan plan;
  plan.lazy_rescale = true;
  plan.tile_m = 128;
  plan.tile_n = 64;
  plan.num_warps = 4;
  const auto heads = [&plan](int d, int d_v) {
    plan.headdim = plan.padded_headdim = d;
    plan.headdim_v = plan.padded_headdim_v = d_v;
  };
  switch (tile) {
    case Sm80Tile::d64:
      heads(64, 64);
      plan.stages = 2;
      plan.merged_wait = true;
      plan.q_in_registers = true;
      break;
    case Sm80Tile::d96:
      heads(96, 96);
      break;
    case Sm80Tile::d128:
      heads(128, 128);
      plan.stages = 2;
      plan.merged_wait = true;
      break;
    case Sm80Tile::d192v128:
      heads(192, 128);
      plan.tile_m = 64;
      break;
    case Sm80Tile::d192:
      heads(192, 192);
      plan.tile_m = 64;
      break;
    case Sm80Tile::d256:
      heads(256, 256);
      plan.tile_m = 64;
      break;
    case Sm80Tile::d128_short:
      heads(128, 128);
      break;
    case Sm80Tile::d256_short:
      heads(256, 256);
      break;
  }
  if (is_short(tile)) {
    plan.tile_m = 16;
    plan.num_warps = 1;
    plan.q_in_registers = plan.headdim <= 128;
    plan.stages = plan.headdim <= 128 ? 2 : 1;  // of 256 columns, two leave room for one CTA an SM, one for three
    plan.merged_wait = plan.stages > 1;
  }
  return plan;
}

/// `plan` with what a kind's code holds across the loop over key tiles, as the kernels with registers to spare show at
/// its head (bench/hardware/registers/live_words.py), 2 to 3 off in the root mean square: a column for each panel in
/// which a thread copies a row of K; in the general kind, where a function takes them, two slots' numbers. Where O, Q,
/// a lane's rows and S with ALiBi's distances, a word a score, leave that kind too few of the 255 registers that a
/// thread can have, what all lanes share is in uniform ones: 13 to 21 words are left, 17 in the middle, on either
/// architecture. Then what that function, which copies odd granules, has alive at once itself (called_words.py); and
/// the fragments that the compiler keeps in flight down to the fewest registers with which those kernels do not spill
/// (least_registers.py).
constexpr KernelPlan with_words_of(KernelPlan plan, Sm80Kind kind) {
  const int panels = std::max(1, plan.granules(Operand::k) / std::max(1, plan.copy_lanes(Operand::k)));
  plan.loop_words = (kind == Sm80Kind::fast ? 27 : plan.stages == 1 ? 30 : 37) + panels - 1;
  plan.loop_words_sm90 = 10;
  const int columns = plan.columns(Operand::o) / 2 + (plan.q_in_registers ? plan.columns(Operand::q) / 4 : 0);
  const int modified = plan.m_blocks() * (columns + plan.tile_n + 4);  // 4: maximum and sum of a lane's two rows
  if (kind == Sm80Kind::general && modified + plan.loop_words > 255) plan.loop_words = 17, plan.loop_words_sm90 = 0;
  plan.fragment_words = 17 + 5 * plan.m_blocks();
  plan.refill_call_words = kind == Sm80Kind::fast ? 0 : 43;
  return plan;
}

/// CTAs an SM that registers are kept free for.
constexpr int sm80_min_ctas(Sm80Tile tile) {
  const int warps = sm80_plan(tile).num_warps;
  return warps == 1 ? 4 : warps == 4 ? 2 : 1;
}

/// The heads that share a key head share tiles of `rows` rows where nothing tells the heads apart: K and V are then
/// read once for all of them. One tile holds them all, or they all see the same keys: so splits have the same keys as
/// without.
constexpr int packable_heads(const Problem& p, std::int64_t rows) {
  const bool heads_alike = !p.alibi && !p.sink && p.bias == Bias::none;
  const std::int64_t group = p.nheads / p.nheads_k;
  return heads_alike && (p.seqlen_q == 1 || p.seqlen_q * group <= rows) ? static_cast<int>(group) : 1;
}

/// Where queries are too few to fill a tile.
constexpr int sm80_packed_heads(const Problem& p) {
  const std::int64_t rows = p.headdim <= 128 && p.headdim_v <= 128 ? 128 : 64;
  return packable_heads(p, p.seqlen_q < 16 ? rows : 0);
}

/// A positive scale alone can stand in the exponent.
constexpr bool sm80_modifies_scores(const Problem& p) {
  return p.softcap != 0 || p.alibi || p.bias != Bias::none || (p.softmax_scale && !(*p.softmax_scale > 0));
}

/// The general kind has fewer tiles, of the same rows and keys a tile, so that bits do not depend on the kind; short
/// ones are of that kind alone.
constexpr Sm80Tile sm80_tile(const Problem& p, Sm80Kind kind) {
  const auto fits = [&p](std::int64_t d, std::int64_t d_v) { return p.headdim <= d && p.headdim_v <= d_v; };
  if (p.seqlen_q * sm80_packed_heads(p) <= 16) return fits(128, 128) ? Sm80Tile::d128_short : Sm80Tile::d256_short;
  if (fits(64, 64)) return Sm80Tile::d64;
  if (kind == Sm80Kind::general) return fits(128, 128) ? Sm80Tile::d128 : Sm80Tile::d256;
  return fits(96, 96)     ? Sm80Tile::d96
         : fits(128, 128) ? Sm80Tile::d128
         : fits(192, 128) ? Sm80Tile::d192v128
         : fits(192, 192) ? Sm80Tile::d192
                          : Sm80Tile::d256;
}

/// The kind where tensors are aligned and not paged.
constexpr Sm80Kind sm80_kind(const Problem& p) {
  return sm80_modifies_scores(p) || p.prefix > 0 || !p.documents.empty() || sm80_packed_heads(p) > 1 ? Sm80Kind::general
                                                                                                     : Sm80Kind::fast;
}
constexpr Sm80Tile sm80_tile(const Problem& p) { return sm80_tile(p, sm80_kind(p)); }

}  // namespace attest
