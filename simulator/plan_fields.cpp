#include <array>
#include <nlohmann/json.hpp>

#include "attest/simulator/plan_file.h"

namespace attest {
namespace {

using Kind = PlanField::Kind;
using P = KernelPlan;

constexpr PlanField fields[] = {
    {"headdim", &P::headdim, 1, 256, Kind::compiled, "width of a query and key head; the case's"},
    {"headdim_v", &P::headdim_v, 1, 256, Kind::compiled, "width of a value and output head; the case's"},
    {"element_bytes", &P::element_bytes, 1, 4, Kind::compiled, "of an input: 1, 2 or 4; the case's"},
    {"tile_m", &P::tile_m, 16, 512, Kind::compiled, "queries a CTA"},
    {"tile_n", &P::tile_n, 16, 512, Kind::compiled, "keys a step"},
    {"num_warps", &P::num_warps, 1, 16, Kind::compiled, "warps that compute; they divide tile_m by rows of 16"},
    {"producer_warps", &P::producer_warps, 0, 4, Kind::compiled, "warps beside them that only copy, with tma"},
    {"stages", &P::stages, 1, 4, Kind::compiled, "slots in shared memory for K, and as many for V"},
    {"merged_wait", &P::merged_wait, 0, 1, Kind::compiled, "one wait and barrier a key tile; needs 2 stages"},
    {"q_in_registers", &P::q_in_registers, 0, 1, Kind::compiled, "Q's fragments are loaded once, not every key tile"},
    {"lazy_rescale", &P::lazy_rescale, 0, 1, Kind::compiled, "O is rescaled only when a maximum grows by 2^8"},
    {"swizzled", &P::swizzled, 0, 1, Kind::placed, "false: rows of 16-byte chunks as they come"},
    {"pad_chunks", &P::pad_chunks, 0, 8, Kind::placed, "16-byte chunks of padding after a row in shared memory"},
    {"padded_headdim", &P::padded_headdim, 0, 256, Kind::compiled, "columns a tile of Q and K holds; 0: as needed"},
    {"padded_headdim_v", &P::padded_headdim_v, 0, 256, Kind::compiled, "columns a tile of V and O holds; 0: as needed"},
    {"copy_bytes_q", &P::copy_bytes_q, 1, 16, Kind::placed, "granule of Q's copies; what the layout allows"},
    {"copy_bytes_k", &P::copy_bytes_k, 1, 16, Kind::placed, "likewise K's"},
    {"copy_bytes_v", &P::copy_bytes_v, 1, 16, Kind::placed, "likewise V's"},
    {"copy_bytes_o", &P::copy_bytes_o, 1, 16, Kind::placed, "likewise O's"},
    {"copy_columns", &P::copy_columns, 0, 256, Kind::placed,
     "of a row, that lanes beside each other copy at a time; 0: as many as a warp can"},
    {"copy_kind", &P::copy_kind, 0, 0, Kind::compiled, "who fills shared memory; synchronous: through registers"},
    {"matrix_kind", &P::matrix_kind, 0, 0, Kind::compiled, "what multiplies"},
    {"overlap", &P::overlap, 0, 0, Kind::compiled, "what runs under wgmma's products"},
    {"p_in_smem", &P::p_in_smem, 0, 1, Kind::compiled, "wgmma: P goes through shared memory, not registers"},
    {"other_smem_bytes", &P::other_smem_bytes, 0, 262144, Kind::placed, "barriers, alignment, further buffers"},
    {"stores_lse", &P::stores_lse, 0, 1, Kind::placed, "false: O alone"},
    {"grid_order", &P::grid_order, 0, 0, Kind::placed, "of CTAs, fastest index first"},
    {"persistence", &P::persistence, 0, 0, Kind::placed, "CTAs that take tile after tile"},
    {"counts_first_tile", &P::counts_first_tile, 0, 1, Kind::placed,
     "dynamic: a CTA's first tile too is the counter's"},
    {"longest_first", &P::longest_first, 0, 1, Kind::placed, "query tiles with the most keys go first"},
    {"l2_section_bytes", &P::l2_section_bytes, 0, 0x1p50, Kind::placed, "heads grouped by K and V that fit it; 0: no"},
    {"cluster", &P::cluster, 1, 16, Kind::placed, "CTAs to which K and V are multicast, with tma"},
    {"skips_tiles", &P::skips_tiles, 0, 1, Kind::placed, "false: key tiles that no query sees are visited too"},
    {"masks_full_tiles", &P::masks_full_tiles, 0, 1, Kind::compiled, "key tiles that all queries see are masked too"},
    {"masked_steps", &P::masked_steps, 0, 64, Kind::compiled,
     "a CTA's first key tiles, each masked by code of its own; 0: a loop masks those that need it"},
    {"stores_zeros", &P::stores_zeros, 0, 1, Kind::placed,
     "beyond columns and rows, of which O loads none; false: copies write them, and O is loaded whole"},
    {"evict_first_q", &P::evict_first_q, 0, 1, Kind::placed, "L2 hint of Q's copies"},
    {"prefetches_q", &P::prefetches_q, 0, 1, Kind::placed, "to L2, before its copies are asked for"},
    {"packed_heads", &P::packed_heads, 1, 65536, Kind::placed, "query heads of a key head whose rows share tiles"},
    {"key_order", &P::key_order, 0, 0, Kind::placed, "in which a CTA walks its key tiles"},
    {"exp_instructions", &P::exp_instructions, 1, 4, Kind::placed, "a score: 1, or 4 where exp2 scales denormals"},
    {"xu_per_query_tile", &P::xu_per_query_tile, 0, 100'000, Kind::placed,
     "of the exponentials' unit, warp instructions beside what the plan implies: divisions of integers"},
    {"xu_per_cta", &P::xu_per_cta, 0, 100'000, Kind::placed, "likewise, once a CTA of a persistent grid"},
    {"loop_words", &P::loop_words, 0, 255, Kind::compiled, "its code keeps across the key loop: addresses, bounds"},
    {"loop_words_sm90", &P::loop_words_sm90, 0, 255, Kind::compiled, "and more compiled for compute capability 9.0"},
    {"fragment_words", &P::fragment_words, 0, 255, Kind::compiled, "of loads of K and Q in flight, at the least"},
    {"refill_call_words", &P::refill_call_words, 0, 255, Kind::compiled, "of a function for odd copies; 0: has none"},
    {"tile_words", &P::tile_words, 0, 255, Kind::compiled, "kept across a query tile by warps with wgmma"},
    {"producer_words", &P::producer_words, 0, 255, Kind::compiled, "of the thread that copies; 0: by persistence"},
    {"known_registers", &P::known_registers, 0, 4096, Kind::known, "a thread, from the compiler; 0: estimate"},
    {"spill_words_per_key_tile", &P::spill_words_per_key_tile, 0, 4096, Kind::known,
     "32-bit words a thread stores each key tile; needs known_registers"},
    {"spill_words_per_cta", &P::spill_words_per_cta, 0, 4096, Kind::known, "and once; needs known_registers"},
    {"spill_words_entering", &P::spill_words_entering, 0, 4096, Kind::known,
     "of these, of CTAs alone that come to a key tile without a mask; spill_words_per_cta at most"},
    {"spill_words_at_start", &P::spill_words_at_start, 0, 4096, Kind::known,
     "and, where persistent, before its first query tile; needs known_registers"},
    {"producer_spill_sectors", &P::producer_spill_sectors, 0, 65536, Kind::known,
     "of 32 bytes that its producers store each query tile; needs known_registers"},
    {"older_cta_lead", &P::older_cta_lead, 0, 999, Kind::known,
     "an SM's oldest CTA is so many thousandths faster than the mean of its CTAs, as clocks have it; 0: alike"},
    {"step_deviation", &P::step_deviation, 0, 999, Kind::known,
     "of a key tile's time, in thousandths, by clocks or counters; 0: as its matrix instruction has it"},
    {"softmax_ahead", &P::softmax_ahead, 0, 2000, Kind::known,
     "within_warpgroup: thousandths of maxima, then of exponentials, before the wait for O += P V"},
};

constexpr std::array<std::string_view, 3> copy_kinds = {"cp_async", "synchronous", "tma"};
constexpr std::array<std::string_view, 2> matrix_kinds = {"mma_sync", "wgmma"};
constexpr std::array<std::string_view, 2> overlaps = {"within_warpgroup", "between_warpgroups"};
constexpr std::array<std::string_view, 2> grid_orders = {"tiles_batch_heads", "tiles_heads_batch"};
constexpr std::array<std::string_view, 3> persistences = {"none", "static_stride", "dynamic"};
constexpr std::array<std::string_view, 2> key_orders = {"descending", "ascending"};

struct Words {
  std::span<const std::string_view> operator()(CopyKind P::*) const { return copy_kinds; }
  std::span<const std::string_view> operator()(MatrixKind P::*) const { return matrix_kinds; }
  std::span<const std::string_view> operator()(Overlap P::*) const { return overlaps; }
  std::span<const std::string_view> operator()(GridOrder P::*) const { return grid_orders; }
  std::span<const std::string_view> operator()(Persistence P::*) const { return persistences; }
  std::span<const std::string_view> operator()(KeyOrder P::*) const { return key_orders; }
  template <class T>
  std::span<const std::string_view> operator()(T P::*) const {
    return {};
  }
};

}  // namespace

std::span<const PlanField> plan_fields() { return fields; }

std::span<const std::string_view> plan_words(const PlanField& field) { return std::visit(Words{}, field.member); }

nlohmann::ordered_json plan_value(const KernelPlan& plan, const PlanField& field) {
  return std::visit(
      [&](auto member) -> nlohmann::ordered_json {
        const auto words = Words{}(member);
        if (words.empty()) return plan.*member;
        return words[static_cast<std::size_t>(plan.*member)];
      },
      field.member);
}

nlohmann::ordered_json to_json(const DescribedPlan& plan) {
  nlohmann::ordered_json json = {{"schema", "attest/plan/1"}, {"name", plan.name}};
  for (const PlanField& field : fields) json[std::string(field.name)] = plan_value(plan.plan, field);
  return json;
}

}  // namespace attest
