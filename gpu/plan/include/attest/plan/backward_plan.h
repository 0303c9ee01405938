// Everything a backward decides before it runs, beside what it shares with the forward: masks, scores, heads, offsets.
//
// A CTA of the main kernel has tile_n keys and walks the query tiles, tile_m queries each, that see any of them, for
// each query head that reads its key head. A wrong backward is a type that derives from BackwardPlan and hides one
// member (fuzz/cpu/backward_mutants.cpp).
#pragma once
#include "attest/plan/kernel_plan.h"

namespace attest {

/// What lies in shared memory, O apart. D is sum dO O of a row; lse and d are vectors of tile_m floats, dq is fp32.
enum class BackwardTile : std::uint8_t { q, dout, lse, d, k, v, p, ds, dq, dk, dv, o };
constexpr const char* to_string(BackwardTile x) {
  constexpr const char* names[] = {"Q", "dO", "LSE", "D", "K", "V", "P", "dS", "dQ", "dK", "dV", "O"};
  return names[static_cast<int>(x)];
}

/// The numbers of a CTA: `seqlen_q` and so on of its batch entry; q_tile is that of preprocess and postprocess.
struct BackwardWork : Work {
  int k_tile = 0;
  int num_heads = 1;  // query heads that share its key head

  constexpr Work at(int query_tile) const {
    Work work = static_cast<const Work&>(*this);  // NOLINT(cppcoreguidelines-slicing): the forward's part of it
    work.q_tile = query_tile;
    return work;
  }
};

struct BackwardPlan : KernelPlan {
  bool dq_over_p = false;      // dQ is gathered in P's place, which saves the smaller tile and costs a barrier
  bool deterministic = false;  // key tiles add to dQ in ascending order, one after the other

  friend constexpr bool operator==(const BackwardPlan&, const BackwardPlan&) = default;

  // ---- shape
  constexpr int keys_per_warp() const { return tile_n / num_warps; }
  static constexpr bool is_of_keys(BackwardTile x) {
    return x == BackwardTile::k || x == BackwardTile::v || x == BackwardTile::dk || x == BackwardTile::dv;
  }
  static constexpr bool is_of_values(BackwardTile x) {
    return x == BackwardTile::v || x == BackwardTile::dv || x == BackwardTile::dout || x == BackwardTile::o;
  }
  constexpr int rows(BackwardTile x) const { return is_of_keys(x) ? tile_n : tile_m; }
  constexpr int columns(BackwardTile x) const {
    switch (x) {
      case BackwardTile::lse:
      case BackwardTile::d:
        return 1;
      case BackwardTile::p:
      case BackwardTile::ds:
        return tile_n;
      default:
        return KernelPlan::columns(is_of_values(x) ? Operand::v : Operand::q);
    }
  }
  constexpr int valid_columns(BackwardTile x) const {
    return KernelPlan::valid_columns(is_of_values(x) ? Operand::v : Operand::q);
  }
  constexpr int slots(BackwardTile x) const {
    return x == BackwardTile::q || x == BackwardTile::dout || x == BackwardTile::lse || x == BackwardTile::d ? stages
                                                                                                             : 1;
  }
  /// Whose place a tile takes: dK and dV are staged over K and V.
  constexpr BackwardTile place_of(BackwardTile x) const {
    return x == BackwardTile::dk                ? BackwardTile::k
           : x == BackwardTile::dv              ? BackwardTile::v
           : x == BackwardTile::dq && dq_over_p ? BackwardTile::p
                                                : x;
  }

  // ---- pipeline: Q, dO, LSE and D of a query tile are one copy group; K and V join the first
  constexpr int copies_ahead() const { return stages == 1 ? 1 : stages - 1; }
  constexpr int queries_pending() const { return stages == 1 ? 0 : stages - 2; }
  constexpr bool barrier_at_top() const { return true; }           // what was waited for is there for all warps
  constexpr bool barrier_before_products() const { return true; }  // P and dS are
  constexpr bool barrier_before_dq() const { return true; }        // dq_over_p: P has been read
  constexpr bool barrier_after_dq() const { return true; }         // dQ is there
  constexpr bool barrier_before_refill() const { return true; }    // stages == 1: Q and dO have been read
  constexpr bool waits_for_preprocess() const { return true; }

  // ---- which query tiles, and where
  constexpr bool has_keys(const BackwardWork& w) const { return w.k_tile * tile_n < w.seqlen_k; }
  constexpr bool writes_without_queries(const BackwardWork&) const { return true; }  // dK = dV = 0
  constexpr TileClass seen_as(const BackwardWork&, int /*q_tile*/, TileClass c) const { return c; }
  constexpr int row_limit(BackwardTile x, const BackwardWork& w, TileClass /*seen_as*/) const {
    return is_of_keys(x) ? w.seqlen_k : w.seqlen_q;
  }
  constexpr int column_limit(BackwardTile x) const { return valid_columns(x); }
  /// First row of LSE or D that goes with a query tile.
  constexpr int statistics_row(BackwardTile /*x*/, int q_tile, int /*first_tile*/) const { return q_tile * tile_m; }
  /// Row of LSE or D that is read for rows past the limit; -1: none, they are +inf and 0, so that P = dS = 0.
  constexpr int row_past_limit(BackwardTile /*x*/) const { return -1; }
  constexpr bool restarts_each_head() const { return false; }  // dK and dV, where query heads share a key head
  constexpr BackwardArgs arguments(const BackwardArgs& args) const { return args; }
  constexpr BackwardWork work(const BackwardWork& w) const { return w; }
  constexpr std::int64_t offset(BackwardTile /*x*/, std::int64_t index, std::int64_t stride) const {
    return index * stride;
  }
  /// Of a row of dQ's accumulator, in floats.
  constexpr std::int64_t accumulator_offset(std::int64_t row, std::int64_t columns) const { return row * columns; }
  constexpr bool adds_in_order() const { return deterministic; }  // to dQ, dbias and dsink
  constexpr bool adds_past_rows() const { return false; }  // 0 to a row before the first, for rows that do not exist

  // ---- arithmetic, in fp32 unless said otherwise
  constexpr float score_gradient(float p, float dp, float d) const { return p * (dp - d); }
  /// d score / d (scale q.k), of a score that softcap bent.
  template <class Tanh>
  constexpr float softcap_slope(const ScoreNumbers& n, float dot, Tanh tanh) const {
    const float t = tanh(dot * n.scale / n.softcap);
    return 1.0f - t * t;
  }
  constexpr float dq_scale(float scale) const { return scale; }
  constexpr float dk_scale(float scale) const { return scale; }
  constexpr float keep_row_product(float x) const { return x; }  // of dO and O, before D's sum

  /// As KernelPlan's.
  constexpr const char* invalid() const {
    if (const char* why = KernelPlan::invalid()) return why;
    if (tile_n % (16 * num_warps) != 0) return "tile_n is no multiple of 16 keys for each of num_warps = {num_warps}";
    return nullptr;
  }
};

}  // namespace attest
