#include "compiled_registers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attest/plan/catalog.h"
#include "attest/simulator/case_counts.h"
#include "compiled_fa2.h"
#include "copy_time.h"
#include "csv.h"
#include "embedded.h"
#include "in_branch.h"
#include "kernel_code.h"

namespace attest {
namespace {

/// Words that a thread stores or loads, or instructions that do, by place (spill_places.py).
struct TileWords {
  int always, copy, window, rescale, alibi;
};
struct Words {
  int early, once, turn, enters;
  TileWords masked, whole;
};

/// A row of the file: what ptxas says, and those words.
struct Compiled {
  int arch, tile, kind, registers, frame, code_bytes;
  Words stored, loaded, store_instructions, load_instructions;
  std::string plan;
};

std::vector<Compiled> read_compiled() {
  const CsvTable table(text_of(embedded_measured(), "registers_gpu_sm80"));
  std::vector<Compiled> rows;
  for (std::size_t i = 0; i < table.lines().size(); ++i) {
    const auto number = [&](std::string_view name) { return table.number(i, name); };
    const auto words = [&](const std::string& done) {
      const auto at = [&](const std::string& place) { return number(fmt::format("{}_{}", place, done)); };
      const auto of_tile = [&](const std::string& loop) {
        return TileWords{at(loop), at(loop + "_copy"), at(loop + "_window"), at(loop + "_rescale"),
                         at(loop + "_alibi")};
      };
      return Words{at("early"), at("once"), at("turn"), at("enters"), of_tile("masked"), of_tile("whole")};
    };
    rows.push_back({number("arch"), number("tile"), number("kind"), number("registers"), number("stack_bytes") / 4,
                    number("code_bytes"), words("stored"), words("loaded"), words("stores"), words("loads"),
                    table.cell(i, "plan")});
  }
  return rows;
}

/// The newest architecture of the file that code for the device is compiled for: 90 means 90a, which runs there alone.
int architecture_of(const DeviceSpec& device) {
  const auto compute_capability = static_cast<int>(device.compute_capability);
  return compute_capability / 10 == 9 ? 90 : compute_capability / 10 == 8 ? 80 : 0;
}

const std::vector<Compiled>& compiled_kernels() {
  static const std::vector<Compiled> rows = read_compiled();
  return rows;
}

/// Whether gpu/sm80 launches that kernel, or an ablation of it, for a case, and the plan has its tiles.
bool is_launched(const Compiled& row, const KernelPlan& plan, const Case& c, const DeviceSpec& device) {
  const Sm80Choice kernel = sm80_choice(c);
  const KernelPlan shape = sm80_plan(kernel.tile);
  return plan.element_bytes == 2 && plan.tile_m == shape.tile_m && plan.tile_n == shape.tile_n &&
         plan.num_warps == shape.num_warps && plan.stages == shape.stages && row.arch == architecture_of(device) &&
         row.tile == static_cast<int>(kernel.tile) && row.kind == static_cast<int>(kernel.kind);
}

/// What a case's branches make of them.
PlaceCounts words_of(const Words& words, const KernelPlan& plan, const Case& c) {
  const bool plain = !copies_a_granule_at_a_time(plan, Operand::k, c.layout.page_size > 0);
  const auto of_tile = [&](const TileWords& tile) {
    return tile.always + (plain ? tile.copy : 0) + (c.problem.window_left >= 0 ? tile.window : 0) +
           (c.problem.alibi ? tile.alibi : 0);
  };
  return {.early = words.early,
          .once = words.once,
          .run = words.turn,
          .enters = words.enters,
          .masked = of_tile(words.masked),
          .whole = of_tile(words.whole),
          .masked_rescales = words.masked.rescale,
          .whole_rescales = words.whole.rescale,
          .tiles = {}};
}

/// `plan` with those registers and, in a frame of local memory, words stored in each key tile and once a CTA.
KernelPlan with_words_of(const CompiledFa2& kernel, KernelPlan plan) {
  plan.known_registers = kernel.registers;
  plan.spill_words_per_key_tile = kernel.spill.stored.whole;
  plan.spill_words_per_cta = kernel.frame.words - kernel.frame.of_tile;
  plan.spill_words_entering = std::clamp(kernel.spill.stored.enters, 0, plan.spill_words_per_cta);
  return plan;
}

/// FlashAttention 2's kernel whose registers and spill a plan of its kind has, whatever it is called.
const CompiledFa2* fa2_kernel_of(const KernelPlan& plan, const Case& c, const DeviceSpec& device) {
  const bool of_its_kind = plan.stores_zeros && plan.grid_order == GridOrder::tiles_batch_heads && plan.stages == 1 &&
                           plan.copy_columns == fa2_copy_columns(plan.columns(Operand::q));
  const CompiledFa2* const kernel = of_its_kind ? compiled_fa2(plan, c, device) : nullptr;
  return kernel != nullptr && plan == with_words_of(*kernel, plan) ? kernel : nullptr;
}

KernelPlan with_words_of(const Compiled& row, KernelPlan plan, const Case& c) {
  const PlaceCounts stored = words_of(row.stored, plan, c);
  plan.known_registers = row.registers;
  plan.spill_words_per_key_tile = stored.whole;
  plan.spill_words_per_cta = stored.of_cta();
  plan.spill_words_entering = stored.enters;
  return plan;
}

/// The row whose registers and spill a plan has: of the kernel that `name` names, or any of its tiles.
const Compiled* kernel_of(const KernelPlan& plan, std::string_view name, const Case& c, const DeviceSpec& device) {
  const Compiled* found = nullptr;
  for (const Compiled& row : compiled_kernels())
    if ((found == nullptr || row.plan == name) && is_launched(row, plan, c, device) &&
        plan == with_words_of(row, plan, c))
      found = &row;
  return found;
}

/// Whether a line whose first columns are arch, tile, kind and plan is of that kernel.
bool is_of(const std::vector<std::string>& cells, const Compiled& row) {
  return cells.at(0) == std::to_string(row.arch) && cells.at(1) == std::to_string(row.tile) &&
         cells.at(2) == std::to_string(row.kind) && cells.at(3) == row.plan;
}

/// By clocks; 0 where the kernel has none. Its longest call comes first: what CTAs do around their key tiles they do at
/// no other's cost.
int lead_of(const Compiled& row) {
  static const CsvTable all(text_of(embedded_measured(), "cta_leads"));
  for (const std::vector<std::string>& cells : all.lines())
    if (is_of(cells, row)) return std::max(0, std::atoi(cells.at(4).c_str()));
  return 0;
}

/// `cycles`: a turn's, or CYCLES@PLACE of a branch.
SpillTrace trace_of(const std::string& cycles, const std::string& accesses) {
  SpillTrace trace;
  std::sscanf(cycles.c_str(), "%d@%d", &trace.cycles, &trace.place);
  std::istringstream in(accesses);
  char kind = 0;
  for (SpillAccess a; in >> a.at >> kind; a = {}) {
    using Kind = SpillAccess::Kind;
    a.kind = kind == 's' ? Kind::store : kind == 'u' ? Kind::last_load : kind == 'c' ? Kind::call : Kind::load;
    if (a.kind != Kind::call) in >> a.word;
    if (a.kind == Kind::load || a.kind == Kind::last_load) in >> kind >> a.waited;
    trace.accesses.push_back(a);
  }
  return trace;
}

UnseenWavefronts unseen_of_fa2(const CompiledFa2& kernel, const KernelPlan& plan, const Case& c) {
  UnseenWavefronts unseen;
  const Counts counts = count_case(c, plan);
  if (counts.key_tiles == 0) return unseen;
  const KeyRuns runs = count_key_runs(c, plan);
  for (const std::size_t x : {0, 1, 2}) {
    const CopiedWavefronts& n = counts.copied[x];
    if (n.in_part == 0 || kernel.stopped[x].tiles.empty()) continue;
    const auto share = [&](const PlaceCounts& copies) {
      return of_all_ctas(copies, runs, counts.key_tiles) * plan.num_warps / static_cast<double>(n.in_part);
    };
    const double stale = share(kernel.stale[x]), others = share(kernel.stopped[x]) - stale;
    unseen.all += others * static_cast<double>(n.all - n.as_whole) - stale * static_cast<double>(n.idle_lanes);
    const CopiedWavefronts& ideal = counts.copied_ideal[x];
    unseen.ideal += (others + stale) * static_cast<double>(ideal.all - ideal.as_whole);
  }
  return unseen;
}

}  // namespace

KernelPlan with_compiled_registers(KernelPlan plan, std::string_view name, const Case& c, const DeviceSpec& device) {
  if (const CompiledFa2* const kernel = name == "fa2" ? compiled_fa2(plan, c, device) : nullptr)
    return with_words_of(*kernel, plan);
  for (const Compiled& row : compiled_kernels())
    if (row.plan == name && is_launched(row, plan, c, device)) {
      plan.older_cta_lead = lead_of(row);
      return with_words_of(row, plan, c);
    }
  return plan;
}

std::optional<CompiledSpill> compiled_spill(const KernelPlan& plan, std::string_view name, const Case& c,
                                            const DeviceSpec& device) {
  if (const CompiledFa2* const kernel = fa2_kernel_of(plan, c, device)) return kernel->spill;
  const Compiled* const row = kernel_of(plan, name, c, device);
  if (row == nullptr) return std::nullopt;
  return CompiledSpill{words_of(row->stored, plan, c), words_of(row->loaded, plan, c),
                       words_of(row->store_instructions, plan, c), words_of(row->load_instructions, plan, c)};
}

std::optional<PlaceCounts> compiled_instructions(const KernelPlan& plan, const Case& c, const DeviceSpec& device) {
  const CompiledFa2* const kernel = fa2_kernel_of(plan, c, device);
  return kernel == nullptr ? std::nullopt : std::optional(kernel->instructions);
}

int compiled_column_instructions(const KernelPlan& plan, const Case& c, const DeviceSpec& device) {
  const CompiledFa2* const kernel = fa2_kernel_of(plan, c, device);
  return kernel == nullptr ? 0 : kernel->column_instructions;
}

std::vector<AlonePhase> compiled_alone(const KernelPlan& plan, std::string_view name, const Case& c,
                                       const DeviceSpec& device) {
  std::vector<AlonePhase> phases;
  const Compiled* const row = kernel_of(plan, name, c, device);
  const auto by_function = [&](Operand x) { return copies_a_granule_at_a_time(plan, x, c.layout.page_size > 0); };
  if (row == nullptr || plan.copy_kind != CopyKind::cp_async || by_function(Operand::k) || by_function(Operand::v) ||
      code_of_scores(plan).instructions > 0 || parts_of(c).segments || plan.exp_instructions != 1)
    return phases;
  static const CsvTable all(text_of(embedded_measured(), "warp_alone"));
  for (const std::vector<std::string>& cells : all.lines())
    if (is_of(cells, *row))
      phases.push_back(
          {std::stod(cells.at(5)), std::stod(cells.at(6)), std::stod(cells.at(7)), std::stod(cells.at(8))});
  double fragments = 0, copies = 0;
  for (const AlonePhase& phase : phases) fragments += phase.of_fragments, copies += phase.of_copies;
  for (AlonePhase& phase : phases) phase.of_fragments /= fragments, phase.of_copies /= copies;
  return phases;
}

std::optional<double> compiled_code_bytes(const KernelPlan& plan, std::string_view name, const Case& c,
                                          const DeviceSpec& device) {
  if (const CompiledFa2* const kernel = fa2_kernel_of(plan, c, device)) return kernel->code_bytes;
  const Compiled* const row = kernel_of(plan, name, c, device);
  return row == nullptr ? std::nullopt : std::optional<double>(row->code_bytes);
}

SpillTraces compiled_traces(const KernelPlan& plan, std::string_view name, const Case& c, const DeviceSpec& device) {
  SpillTraces traces;
  const Compiled* const row = kernel_of(plan, name, c, device);
  if (row == nullptr) return traces;
  static const CsvTable all(text_of(embedded_measured(), "spill_traces"));
  const std::map<std::string_view, SpillTrace*> by_name = {
      {"whole", &traces.whole},
      {"masked", &traces.masked},
      {"whole_rescale", &traces.whole_rescale},
      {"masked_rescale", &traces.masked_rescale},
      {"begin", &traces.begin},
      {"run", &traces.run},
      {"enter", &traces.enter},
      {"end", &traces.end},
  };
  const auto plain = [&](Operand x) { return !copies_a_granule_at_a_time(plan, x, c.layout.page_size > 0); };
  const bool plain_k = plain(Operand::k), plain_v = plain(Operand::v);
  const std::map<std::string_view, bool> asked = {
      {"_copy", plain_k && plain_v}, {"_window", c.problem.window_left >= 0}, {"_alibi", c.problem.alibi}};
  std::vector<std::pair<std::string, SpillTrace>> of_branches;
  for (const std::vector<std::string>& cells : all.lines()) {
    if (!is_of(cells, *row)) continue;
    const SpillTrace trace = trace_of(cells.at(5), cells.at(6));
    if (const auto whole = by_name.find(cells.at(4)); whole != by_name.end()) {
      *whole->second = trace;
      bool of_k = true;  // the first call of a key tile copies K, the second V
      std::erase_if(whole->second->accesses, [&](const SpillAccess& a) {
        return a.kind == SpillAccess::Kind::call && (std::exchange(of_k, !of_k) ? plain_k : plain_v);
      });
    } else {
      of_branches.emplace_back(cells.at(4), trace);
    }
  }
  for (const auto& [of, branch] : of_branches) {
    const std::size_t loop = of.find('_');
    if (asked.at(of.substr(loop))) {
      SpillTrace& turn = *by_name.at(of.substr(0, loop));
      turn.accesses = in_branch(branch.accesses, turn.accesses, &SpillAccess::at);
    }
  }
  return traces;
}

std::optional<LocalFrame> compiled_frame(const KernelPlan& plan, std::string_view name, const Case& c,
                                         const DeviceSpec& device) {
  if (const CompiledFa2* const kernel = fa2_kernel_of(plan, c, device)) {
    LocalFrame frame = kernel->frame;
    if (c.problem.headdim >= plan.copy_columns) frame.in_part = 0;  // each thread copies a column that is there
    return frame.words == 0 ? std::nullopt : std::optional(frame);
  }
  const Compiled* const row = kernel_of(plan, name, c, device);
  if (row == nullptr || row->frame == 0) return std::nullopt;
  std::set<int> of_tile;
  for (const SpillAccess& a : compiled_traces(plan, name, c, device).whole.accesses)
    if (a.kind == SpillAccess::Kind::store) of_tile.insert(a.word);
  const auto words = static_cast<int>(of_tile.size());
  return LocalFrame{row->frame, words > 0 ? words : std::min(plan.spill_words_per_key_tile, row->frame)};
}

UnseenWavefronts unseen_wavefronts(const KernelPlan& plan, std::string_view name, const Case& c,
                                   const DeviceSpec& device) {
  if (const CompiledFa2* const kernel = fa2_kernel_of(plan, c, device)) return unseen_of_fa2(*kernel, plan, c);
  UnseenWavefronts unseen;
  const Compiled* const row = kernel_of(plan, name, c, device);
  if (row == nullptr || copies_a_granule_at_a_time(plan, Operand::k, c.layout.page_size > 0)) return unseen;
  const Counts counts = count_case(c, plan);
  if (counts.key_tiles == 0) return unseen;
  const double tiles = static_cast<double>(counts.key_tiles), masked = static_cast<double>(counts.masked_key_tiles);
  const KeyRuns runs = count_key_runs(c, plan);
  const double before = static_cast<double>(runs.masked_first + runs.whole_first) / tiles;
  static const CsvTable all(text_of(embedded_measured(), "unseen_copies"));
  for (const std::vector<std::string>& cells : all.lines()) {
    if (!is_of(cells, *row)) continue;
    const std::string &operand = cells.at(4), &place = cells.at(5);
    // the first K, with two slots the first V too, is copied before the loops
    const bool in_loops = operand == "v" && plan.stages == 1;
    const double of_place = operand == "q" ? 1
                            : place == "before"
                                ? before
                                : (in_loops ? 1 : 1 - before) * (place == "whole" ? tiles - masked : masked) / tiles;
    const auto share = [&](std::size_t column) {
      return of_place * std::stod(cells.at(column)) / std::stod(cells.at(6));
    };
    const auto x = static_cast<std::size_t>(operand == "q" ? Operand::q : operand == "k" ? Operand::k : Operand::v);
    const auto of = [&](const CopiedWavefronts& n) {
      return share(7) * static_cast<double>(n.all) + share(8) * static_cast<double>(n.all - n.as_zeros) +
             share(9) * static_cast<double>(n.all - n.as_whole);
    };
    unseen.all += of(counts.copied[x]);
    unseen.ideal += of(counts.copied_ideal[x]);
  }
  return unseen;
}

}  // namespace attest
