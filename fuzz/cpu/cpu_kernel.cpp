#include "attest/cpu/cpu_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

#include "attest/plan/launch.h"
#include "attest/plan/sm80_tiles.h"
#include "attest/problem/error.h"
#include "attest/problem/splitmix64.h"
#include "attest/simulator/plan_file.h"

namespace attest {
namespace {

// What shared memory sees of a program, and what a hazard would be called: its steps without the rows they stand for.
std::string shape_of(const KernelPlan& plan, const Program& program) {
  std::string key =
      fmt::format("{} {} {} {} {} {} {} {} {} {} {}:", plan.headdim, plan.headdim_v, plan.element_bytes, plan.tile_m,
                  plan.tile_n, plan.num_warps, plan.stages, plan.q_in_registers, plan.merged_wait,
                  plan.copy_bytes_q * 32 + plan.copy_bytes_k, plan.copy_bytes_v * 32 + plan.copy_bytes_o);
  for (const auto& warp : program.warps) {
    for (const Step& s : warp) {
      const bool store = s.kind == Step::Kind::store;
      const int valid = store ? std::clamp(s.limit - program.work.q_tile * plan.tile_m, 0, plan.tile_m) : 0;
      const std::int32_t fields[] = {static_cast<std::int32_t>(s.kind) << 8 | static_cast<std::int32_t>(s.operand),
                                     s.slot, s.tile, valid};
      key.append(reinterpret_cast<const char*>(fields), sizeof fields);
    }
    key.push_back('|');
  }
  return key;
}

}  // namespace

void HazardMemory::begin(const KernelPlan& plan) {
  plan_ = plan;
  inspected_ = InspectedPrograms(max_steps);
  found_.clear();
}

void HazardMemory::inspect(const Program& program) {
  // Counted whether remembered or not: what a case is told must not depend on the cases before it.
  if (!inspected_.take(program.warps.front().size())) return;
  std::string shape = shape_of(plan_, program);
  auto at = seen_.find(shape);
  if (at == seen_.end()) {
    remembered_bytes_ += shape.size();
    if (remembered_bytes_ > max_remembered_bytes) {
      seen_.clear();
      remembered_bytes_ = shape.size();
    }
    at = seen_.emplace(std::move(shape), std::vector<std::string>{}).first;
    for (const Hazard& hazard : find_hazards(plan_, program)) at->second.push_back(hazard.what);
  }
  for (const std::string& name : at->second)
    if (std::find(found_.begin(), found_.end(), name) == found_.end()) found_.push_back(name);
}

CpuPlanSpec parse_cpu_plan_spec(std::string_view text) {
  CpuPlanSpec spec;
  struct Field {
    std::string_view name;
    int* value;
    int lowest, highest;
    std::array<std::string_view, 2> words;  // in place of 1 and 2
    bool given;
  };
  Field fields[] = {{"tile_m", &spec.tile_m, 1, 512, {}, false},
                    {"tile_n", &spec.tile_n, 1, 512, {}, false},
                    {"warps", &spec.num_warps, 1, 512, {}, false},
                    {"stages", &spec.stages, 1, 512, {}, false},
                    {"q_in_registers", &spec.q_in_registers, 0, 1, {}, false},
                    {"lazy_rescale", &spec.lazy_rescale, 0, 1, {}, false},
                    {"merged_wait", &spec.merged_wait, 0, 1, {}, false},
                    {"order", &spec.key_order, 1, 2, {"descending", "ascending"}, false},
                    {"grid", &spec.grid_order, 1, 2, {"tiles-heads-batch", "tiles-batch-heads"}, false},
                    {"packed_heads", &spec.packed_heads, 0, 1, {}, false}};
  for (std::string_view rest = text; !rest.empty();) {
    const auto comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma), name = word.substr(0, word.find('='));
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    const auto field =
        std::find_if(std::begin(fields), std::end(fields), [&](const Field& f) { return f.name == name; });
    if (field == std::end(fields)) {
      std::string names;
      for (const Field& f : fields) names += fmt::format("{}{}", names.empty() ? "" : ", ", f.name);
      throw InvalidInput("kernel", fmt::format("'{}'", word), fmt::format("sets none of {}", names));
    }
    if (field->given) throw InvalidInput("kernel", fmt::format("'{}'", word), fmt::format("sets {} again", name));
    field->given = true;
    const std::string_view value = word.size() > name.size() ? word.substr(name.size() + 1) : std::string_view{};
    const auto& words = field->words;
    if (!words[0].empty()) {
      if (value != words[0] && value != words[1])
        throw InvalidInput(name, fmt::format("'{}'", value), fmt::format("is neither {} nor {}", words[0], words[1]));
      *field->value = value == words[0] ? 1 : 2;
      continue;
    }
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *field->value);
    if (error != std::errc() || end != value.data() + value.size() || *field->value < field->lowest ||
        *field->value > field->highest)
      throw InvalidInput(name, fmt::format("'{}'", value),
                         field->highest == 1 ? "is neither 0 nor 1" : "is no integer of 1 to 512");
  }
  return spec;
}

void refuse_impossible(const KernelPlan& plan, const char* why, std::string_view what) {
  if (why == nullptr) return;
  const PlanFault fault = plan_fault(plan, why);
  throw InvalidInput(
      "kernel",
      fmt::format("tile_m={},tile_n={},warps={},stages={}", plan.tile_m, plan.tile_n, plan.num_warps, plan.stages),
      fmt::format("makes no {}: {} {} {}", what, fault.field, fault.value, fault.limit));
}

KernelPlan cpu_plan(const CpuPlanSpec& spec, const Case& c) {
  std::uint64_t state = c.seed;
  const auto draw = [&](int fixed, std::initializer_list<int> choices) {
    const int drawn = choices.begin()[next_splitmix64(state) % choices.size()];
    return fixed > 0 ? fixed : drawn;
  };
  const auto flip = [&](int fixed) {
    const bool drawn = next_splitmix64(state) & 1;
    return fixed >= 0 ? fixed != 0 : drawn;
  };
  KernelPlan plan;
  plan.headdim = static_cast<int>(c.problem.headdim);
  plan.headdim_v = static_cast<int>(c.problem.headdim_v);
  plan.element_bytes = bytes_of(c.problem.dtype);
  plan.num_warps = draw(spec.num_warps, {1, 2, 4});
  plan.tile_m = draw(spec.tile_m, {1, 2}) * (spec.tile_m > 0 ? 1 : 16 * plan.num_warps);
  plan.tile_n = draw(spec.tile_n, {16, 32, 64, 64, 128});
  if (plan.element_bytes == 1 && spec.tile_n == 0) plan.tile_n = std::max(plan.tile_n, plan.k_step());
  plan.stages = draw(spec.stages, {1, 1, 2, 3});
  plan.q_in_registers = flip(spec.q_in_registers);
  plan.lazy_rescale = flip(spec.lazy_rescale);
  const bool merged = flip(spec.merged_wait);
  plan.merged_wait = merged && (plan.stages > 1 || spec.merged_wait == 1);
  plan.key_order = draw(spec.key_order, {1, 2}) == 2 ? KeyOrder::ascending : KeyOrder::descending;
  plan.grid_order = draw(spec.grid_order, {1, 2}) == 2 ? GridOrder::tiles_batch_heads : GridOrder::tiles_heads_batch;
  plan = with_features(with_layout(plan, c), c);
  if (spec.packed_heads == 1) plan.packed_heads = packable_heads(c.problem, plan.tile_m);
  refuse_impossible(plan, plan.invalid(), "kernel");
  return plan;
}

std::unique_ptr<Behaviour> CpuKernel::right_behaviour(const KernelPlan& plan) {
  return std::make_unique<BehaviourOf<KernelPlan>>(plan);
}

CpuKernel::CpuKernel(const CpuPlanSpec& spec, MakeBehaviour behaviour, MakeBackward backward)
    : spec_(spec), make_behaviour_(behaviour), make_backward_(backward) {
  capability_.name = "cpu";
  capability_.description =
      "FlashAttention-2 style, forward and backward, recorded from the kernels' own roles and run on the CPU";
  capability_.dtypes.assign(std::begin(all_dtypes), std::end(all_dtypes));
  capability_.offers_gradients = true;
  capability_.bitwise_batch = true;
  capability_.bitwise_gqa = true;
  capability_.bitwise_layout = true;
}

Numerics CpuKernel::numerics(const Case& c) const {
  const KernelPlan plan = cpu_plan(spec_, c);
  Numerics n = flash_numerics(c.problem.dtype, plan.tile_n);
  n.max_P = plan.lazy_rescale ? 256 : 1;
  n.lse_max_roundings = 5;  // through base 2, see Executor::finish
  n.eps_tanh = 0x1p-22;     // std::tanh of a float: 2 ulp
  n.num_splits = static_cast<int>(c.num_splits);
  return n;
}

std::optional<std::string> CpuKernel::unsupported(const Case& c) const {
  if (c.backward && is_fp8(c.problem.dtype)) return "the CPU kernel does not run the backward of 8-bit inputs";
  if (is_fp8(c.problem.dtype) && spec_.tile_n % 32 != 0)
    return fmt::format("tile_n={} is no multiple of the 32 keys of a matrix step of 8-bit values", spec_.tile_n);
  return std::nullopt;
}

RunReport CpuKernel::run(const Case& c, const ForwardArgs& args) {
  const auto behaviour = make_behaviour_(cpu_plan(spec_, c));
  hazards_.begin(behaviour->plan());
  const std::vector<std::string> faults =
      forward_on_cpu(*behaviour, c, args, [&](const Program& program) { hazards_.inspect(program); });
  RunReport report{hazards_.found()};
  report.hazards.insert(report.hazards.end(), faults.begin(), faults.end());
  return report;
}

}  // namespace attest
