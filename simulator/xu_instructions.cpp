#include "xu_instructions.h"

#include <algorithm>

#include "attest/simulator/compulsory.h"
#include "copy_time.h"

namespace attest {
namespace {

// An integer division of 32 bits: a conversion to floating point, a reciprocal, a conversion back.
constexpr int division = 3;
// What gpu/sm80's code divides (cuobjdump -sass): lanes, rows and granules in a call of the function that copies; the
// same for a store of what is not plain, and the rows of each of its passes; a CTA's key tiles by splits, twice; a row
// in pages by a page, a row of packed heads by the heads; a query head by those of a key head, twice.
constexpr int of_call = 5 * division, of_store = 3 * division, of_pass = division, of_splits = 2 * division;

/// Groups of so many rows, of the query tiles of all heads.
std::int64_t groups_of_rows(const SimulationReport& r, int rows) {
  std::int64_t groups = 0;
  for (const Lengths& n : lengths_of(r.c.problem))
    groups += n.entries * ((n.queries * r.plan.packed_heads + rows - 1) / rows);
  return groups * (r.c.problem.nheads / r.plan.packed_heads);
}

/// In the tiles' copies, a warp's.
double of_copies(const SimulationReport& r) {
  const KernelPlan& plan = r.plan;
  const double key_head = r.c.problem.nheads != r.c.problem.nheads_k ? 2 * division : 0;
  const bool pages = r.c.layout.page_size > 0;
  double n = 0;
  for (const Operand x : {Operand::k, Operand::v}) {
    if (!copies_a_granule_at_a_time(plan, x, pages)) continue;
    const double granules = static_cast<double>(plan.rows(x)) * plan.granules(x) / plan.threads();
    n += static_cast<double>(r.walk.key_tiles) * plan.num_warps * (of_call + key_head + pages * granules * division);
  }
  if (copies_a_granule_at_a_time(plan, Operand::q, pages)) {
    n += static_cast<double>(r.walk.ctas_with_rows) * plan.num_warps * (of_call + key_head);
    if (plan.packed_heads > 1) {  // of rows that exist
      const int lanes = plan.copy_lanes(Operand::q);
      n += static_cast<double>(groups_of_rows(r, 32 / lanes)) * plan.num_splits * plan.granules(Operand::q) / lanes *
           division;
    }
  }
  return n;
}

/// In the stores of O and LSE, a warp's.
double of_stores(const SimulationReport& r) {
  const KernelPlan& plan = r.plan;
  if (!copies_by_call(plan) || plan.num_splits > 1) return 0;
  const int passes = plan.rows_per_warp() / plan.store_rows(),
            panels = (plan.granules(Operand::o) + plan.store_lanes() - 1) / plan.store_lanes();
  const double narrow = plan.copy_bytes_o < 16 ? of_store + passes * of_pass : 0;
  const double packed = plan.packed_heads > 1 ? passes * panels * division : 0;
  double n = static_cast<double>(r.walk.ctas_with_rows) * plan.num_warps * (narrow + packed);
  if (plan.packed_heads > 1) n += static_cast<double>(groups_of_rows(r, 8)) * division;
  return n;
}

/// In the kernel that combines splits, a warp of which has a row: each 32 splits a lane's two exponentials and its
/// division, a reciprocal and a check of its range (FCHK); and where its row of packed heads lies in O and in LSE.
double of_combine(const SimulationReport& r) {
  const int turns = (r.plan.num_splits + 31) / 32;
  return static_cast<double>(groups_of_rows(r, 1)) * (4 * turns + (r.plan.packed_heads > 1 ? 2 * division : 0));
}

}  // namespace

double xu_instructions(const SimulationReport& r, const Counts& counts, const KeyRuns& runs) {
  const KernelPlan& plan = r.plan;
  const double warps = plan.num_warps, rows = 2.0 * plan.m_blocks();  // a lane has two rows of a block
  const double scores = static_cast<double>(counts.exponentials) / 32;
  const auto ctas = static_cast<double>(r.walk.ctas_with_rows), tiles = static_cast<double>(r.walk.key_tiles),
             first_tiles = static_cast<double>(ctas_of(runs));
  // Lazily O is rescaled where a row meets its first key, and else seldom.
  const double rescales = plan.lazy_rescale ? first_tiles : tiles - first_tiles;
  double n = scores + warps * rows * rescales;
  n += warps * rows * ctas * (plan.stores_lse ? 2 : 1);  // a logarithm and a reciprocal of its sum
  if (plan.sink) n += warps * rows * ctas * 2 / plan.num_splits;
  if (plan.softcap) n += scores + warps * tiles;  // tanh, and the reciprocal of the cap
  // below compute capability 9.0 gpu/sm80's conversion of a distance (I2F; above I2FP, of another unit)
  if (plan.alibi && copies_by_call(plan) && r.device.compute_capability < 90) n += scores;
  const auto resident = static_cast<double>(std::min(r.walk.ctas, r.device.num_sms * r.ctas_per_sm));
  n += plan.xu_per_query_tile * static_cast<double>(r.walk.ctas);
  if (plan.persistence != Persistence::none) n += plan.xu_per_cta * resident;
  if (plan.num_splits > 1) n += of_combine(r) + warps * static_cast<double>(r.walk.ctas) * of_splits;
  return n + of_copies(r) + of_stores(r);
}

}  // namespace attest
