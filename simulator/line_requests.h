// How a plan's copies ask for lines of memory, and what it has to do with requests that merge (coalescer.h).
//
// SMs' requests merge where they are for the same part of a line. A line of which others ask for other parts at the
// same time, be it further copies of the same rows or those of a neighbouring head, merges half as often; one whose
// sectors are asked for by halves hardly ever (docs/results/h200-l2.md, merge_parts and alignment).
#pragma once
#include "address.h"
#include "attest/plan/kernel_plan.h"

namespace attest {

/// Whether boxes of x are as wide as a line, which those that end beyond the tensor's columns were measured for.
bool boxes_are_lines(const KernelPlan& plan, Operand x);

/// Of the bytes that copies bring to an SM the part that L2 is asked for where nothing merges, a mean over rows of
/// `heads`: what a box asks for beyond the columns may be a sector of its own row, which is asked for once
/// (docs/results/h200-l2.md, head_boxes), and so may be those of cp.async of 16 bytes that lie behind a line's end
/// (row_sectors). 1 of other copies.
double asked_part(const KernelPlan& plan, Operand x, const TensorAddress& rows, std::int64_t heads);

/// The part of the requests for a tile of K or V that merge when they come in time, a mean over rows of `heads`.
double merging_part(const KernelPlan& plan, Operand x, const TensorAddress& rows, std::int64_t heads);
/// Of both, by their bytes.
double merging_part(const KernelPlan& plan, const TensorAddress& k, const TensorAddress& v, std::int64_t heads);

}  // namespace attest
