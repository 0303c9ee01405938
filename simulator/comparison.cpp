#include "attest/simulator/comparison.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "attest/simulator/compulsory.h"
#include "attest/simulator/plan_file.h"
#include "attest/simulator/unfused.h"
#include "compiled_registers.h"
#include "refusals.h"

namespace attest {
namespace {

using Call = MeasuredCall;
using R = SimulationReport;
using Value = std::optional<double>;

Value scaled(Value x, double factor) { return x ? std::make_optional(*x * factor) : std::nullopt; }

template <class Row>
double percent_of(const Row& utilisation, std::string_view resource) {
  const auto found = std::find_if(utilisation.begin(), utilisation.end(),
                                  [resource](const Utilisation& u) { return u.resource == resource; });
  return found == utilisation.end() ? 0 : 100 * found->fraction;
}

/// A figure, how it is read off the counters and off each of the two predictions. No function: there is none.
struct Figure {
  std::string_view name, unit, counter;
  Value (*measured)(const Call&, std::string_view counter);
  std::string_view model;
  Value (*predicted)(const R&);
  Value (*unfused)(const UnfusedCost&);
  double (*least_denominator)(const Problem&) = nullptr;  // of its error
};

constexpr auto total = [](const Call& call, std::string_view counter) { return call.sum(counter); };
constexpr auto sectors = [](const Call& call, std::string_view counter) { return scaled(call.sum(counter), 32); };
constexpr auto longest = [](const Call& call, std::string_view counter) { return call.of_longest(counter); };

constexpr std::string_view program = "the recorded program: exact but for what it does not hold";
constexpr std::string_view seen = "the recorded program, with predicate P0 taken for false as the counter takes it";
constexpr std::string_view spill = "registers: estimated spill, or the plan's own data";
constexpr std::string_view by_place = "our compiled kernel's, by place; not known of others";
constexpr std::string_view traffic = "schedule and L2 (tile_walk, l2_cache)";
constexpr std::string_view time = "step_time and tile_walk";

/// Local memory of the three kernels, stored once and loaded once.
constexpr auto local = [](const UnfusedCost& u) -> Value {
  double bytes = 0;
  for (const UnfusedKernel& step : u.steps) bytes += step.local_bytes;
  return bytes;
};

constexpr Figure figures[] = {
    {"dram_read_bytes", "B", "dram__bytes_read.sum", total, traffic,
     [](const R& r) -> Value { return r.dram_read_bytes; },
     [](const UnfusedCost& u) -> Value { return u.dram_read_bytes; }},
    {"dram_write_bytes", "B", "dram__bytes_write.sum", total, "L2: what is written back while the kernels run",
     [](const R& r) -> Value { return r.dram_write_bytes; },
     [](const UnfusedCost& u) -> Value { return u.dram_write_bytes; },
     [](const Problem& p) { return static_cast<double>(compulsory_bytes(p).write); }},
    {"sm_read_bytes", "B", "l1tex__m_xbar2l1tex_read_bytes.sum", total, program,
     [](const R& r) -> Value { return r.sm_read_bytes; }, nullptr},
    {"sm_write_bytes", "B", "l1tex__m_l1tex2xbar_write_bytes.sum", total,
     "the recorded program, and spill that is estimated", [](const R& r) -> Value { return r.sm_write_bytes; },
     [](const UnfusedCost& u) -> Value { return u.sm_write_bytes; }},
    {"l2_read_bytes", "B", "lts__t_sectors_srcunit_tex_op_read.sum", sectors,
     "tile_walk, coalescer: how far CTAs drift", [](const R& r) -> Value { return r.l2_read_bytes; }, nullptr},
    {"l2_write_bytes", "B", "lts__t_sectors_srcunit_tex_op_write.sum", sectors,
     "as sm_write_bytes: stores do not merge", [](const R& r) -> Value { return r.sm_write_bytes; },
     [](const UnfusedCost& u) -> Value { return u.sm_write_bytes; }},
    {"l2_crossing_bytes", "B", "lts__t_sectors_srcunit_ltcfabric.sum", sectors, traffic,
     [](const R& r) -> Value { return r.l2_crossing_bytes; }, nullptr},
    {"smem_wavefronts", "", "memory_l1_wavefronts_shared", total, seen,
     [](const R& r) -> Value { return r.smem_wavefronts; }, nullptr},
    {"smem_wavefronts_ideal", "", "memory_l1_wavefronts_shared_ideal", total, seen,
     [](const R& r) -> Value { return r.smem_wavefronts_ideal; }, nullptr},
    {"spill_store_instructions", "", "smsp__inst_executed_op_local_st.sum", total, by_place,
     [](const R& r) -> Value { return r.spill_store_instructions; }, nullptr},
    {"spill_store_bytes", "B", "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum", sectors, spill,
     [](const R& r) -> Value { return r.spill_store_bytes; }, local},
    {"spill_load_instructions", "", "smsp__inst_executed_op_local_ld.sum", total, by_place,
     [](const R& r) -> Value { return r.spill_load_instructions; }, nullptr},
    {"spill_load_bytes", "B", "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", sectors, spill,
     [](const R& r) -> Value { return r.spill_load_bytes; }, local},
    {"tensor_percent", "%", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", longest, time,
     [](const R& r) -> Value { return percent_of(r.utilisation, "tensor"); }, nullptr},
    {"xu_instructions", "", "sm__inst_executed_pipe_xu.sum", total,
     "the recorded program: exponentials, and what else their unit does",
     [](const R& r) -> Value { return r.xu_instructions; }, nullptr},
    {"registers_per_thread", "", "launch__registers_per_thread", longest, "registers",
     [](const R& r) -> Value { return r.registers_per_thread; }, nullptr},
    {"smem_bytes_per_cta", "B", "launch__shared_mem_per_block", longest, "the plan's layout",
     [](const R& r) -> Value { return r.smem_bytes_per_cta; }, nullptr},
    {"occupancy_percent", "%", "sm__warps_active.avg.pct_of_peak_sustained_active", longest,
     "occupancy, schedule: an SM's CTAs while it has any",
     [](const R& r) -> Value {
       return 100.0 * r.walk.resident_ctas * r.plan.warps() / static_cast<double>(r.device.max_warps_per_sm);
     },
     nullptr},
    {"cycles", "", "sm__cycles_elapsed.max", total, time, [](const R& r) -> Value { return r.cycles; },
     [](const UnfusedCost& u) -> Value { return u.cycles; }},
    {"time_us", "us", "gpu__time_duration.sum",
     [](const Call& call, std::string_view counter) { return scaled(call.sum(counter), 1e-3); },
     "cycles at the clock of the call", [](const R& r) -> Value { return r.time_us; },
     nullptr},  // of three kernels: what good ones would take
    {"kernels", "", "",
     [](const Call& call, std::string_view) -> Value { return static_cast<double>(call.launches.size()); },
     "the schedule", [](const R& r) -> Value { return r.kernels; },
     [](const UnfusedCost& u) -> Value { return u.kernels; }},
};

/// What was measured of a figure, and how far counts deviate from it.
void measure(ComparedFigure& figure, const Figure& f, std::span<const MeasuredCall> counts) {
  std::vector<double> values;
  for (const MeasuredCall& count : counts)
    if (const Value counted = f.measured(count, f.counter)) values.push_back(*counted);
  if (values.size() < counts.size()) return;
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double n = static_cast<double>(values.size()), mean = sum / n;
  figure.measured = mean;
  if (values.size() < 2 || figure.denominator() <= 0) return;
  for (const double value : values) squares += (value - mean) * (value - mean);
  figure.deviation = std::sqrt(squares / (n - 1)) / figure.denominator();
}

template <class Part>
MeanAndMost over_calls(const std::vector<Comparison>& comparisons, std::string_view figure, std::string_view mechanism,
                       Part part_of) {
  MeanAndMost all;
  for (const Comparison& comparison : comparisons) {
    if (!mechanism.empty() && comparison.call.mechanism != mechanism) continue;
    for (const ComparedFigure& f : comparison.figures) {
      const Value part = f.name == figure ? part_of(f) : std::nullopt;
      if (!part) continue;
      ++all.calls;
      all.mean += *part;
      if (all.worst == nullptr || *part > all.most) all.most = *part, all.worst = &comparison;
    }
  }
  if (all.calls > 0) all.mean /= all.calls;
  return all;
}

}  // namespace

std::optional<double> ComparedFigure::ratio() const {
  if (!predicted || !measured || *measured == 0) return std::nullopt;
  return *predicted / *measured;
}

std::optional<double> ComparedFigure::error() const {
  if (!predicted || denominator() <= 0) return std::nullopt;
  return std::abs(*predicted - *measured) / denominator();
}

double ComparedFigure::denominator() const { return measured ? std::max(*measured, least_denominator) : 0; }

Comparison compare(std::span<const MeasuredCall> counts, const DeviceSpec& rated, const DescribedPlan* plan,
                   const Provenance& how) {
  Comparison result;
  const MeasuredCall& call = result.call = mean_of(counts);
  result.counts = counts.size();
  check_own_kernel(call.kernel, call.c);
  // a clock that is lower than the highest leaves DRAM and L2 more time a cycle
  DeviceSpec device = rated;
  const Value cycles = total(call, "sm__cycles_elapsed.max"), nanoseconds = total(call, "gpu__time_duration.sum");
  if (cycles && nanoseconds && *cycles > 0 && *nanoseconds > 0)
    device = device_with(rated, device_field_name(&DeviceSpec::sm_clock_hz), *cycles / *nanoseconds * 1e9,
                         "sm__cycles_elapsed.max over gpu__time_duration.sum");
  const bool warm = how.warm.value_or(false), through_ncu = how.via == Profiler::ncu,
             empties_between = through_ncu && !warm;
  std::optional<SimulationReport> report;
  std::optional<UnfusedCost> unfused;
  if (call.kernel == "unfused" && plan == nullptr) {
    result.plan_name = "three kernels";
    unfused = unfused_cost(call.c.problem, device, own_unfused(call.c.problem), call.dirty_bytes_before(how.via),
                           empties_between, through_ncu);
  } else if (plan == nullptr && plan_of_kernel(call.kernel).empty()) {
    result.unpredicted = "no plan describes this kernel; give one with --plan";
  } else if (const auto why = unpredicted(call.c)) {
    result.unpredicted = *why;
  } else {
    TileWalkOptions effort;
    effort.warm = warm;
    effort.dirty_bytes_at_start = call.dirty_bytes_before(how.via);
    effort.empties_between = empties_between;
    effort.through_ncu = through_ncu;
    result.plan_name = plan != nullptr ? plan->name : plan_of_kernel(call.kernel);
    const KernelPlan& described = plan != nullptr ? plan->plan : plan_named(result.plan_name, call.c, device);
    report = simulate(call.c, described, device, result.plan_name, effort);
    result.bound = report->bound;
    if (!plan_of_kernel(call.kernel).empty()) {  // whose counters leave some out
      const UnseenWavefronts unseen = unseen_wavefronts(report->plan, result.plan_name, call.c, device);
      report->smem_wavefronts -= unseen.all, report->smem_wavefronts_ideal -= unseen.ideal;
    }
  }
  for (const Figure& f : figures) {
    ComparedFigure& figure = result.figures.emplace_back();
    figure.name = f.name, figure.unit = f.unit, figure.counter = f.counter, figure.model = f.model;
    if (f.least_denominator != nullptr) figure.least_denominator = f.least_denominator(call.c.problem);
    measure(figure, f, counts);
    if (report && f.predicted != nullptr) figure.predicted = f.predicted(*report);
    if (unfused && f.unfused != nullptr) figure.predicted = f.unfused(*unfused);
    // gpu/unfused multiplies fp32 by code whose time is not known
    if (unfused && f.name == "cycles" && call.c.problem.dtype == Dtype::fp32) figure.predicted.reset();
  }
  return result;
}

MeanAndMost errors_of(const std::vector<Comparison>& comparisons, std::string_view figure, std::string_view mechanism) {
  return over_calls(comparisons, figure, mechanism, [](const ComparedFigure& f) { return f.error(); });
}

MeanAndMost deviations_of(const std::vector<Comparison>& comparisons, std::string_view figure,
                          std::string_view mechanism) {
  return over_calls(comparisons, figure, mechanism, [](const ComparedFigure& f) { return f.deviation; });
}

std::vector<std::string> mechanisms_of(const std::vector<Comparison>& comparisons) {
  std::vector<std::string> names;
  for (const Comparison& comparison : comparisons)
    if (std::find(names.begin(), names.end(), comparison.call.mechanism) == names.end())
      names.push_back(comparison.call.mechanism);
  return names;
}

}  // namespace attest
