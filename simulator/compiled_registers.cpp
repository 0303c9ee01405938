#include "compiled_registers.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "attest/plan/catalog.h"
#include "csv.h"
#include "embedded.h"

namespace attest {
namespace {

/// A row of the file: what ptxas says, and the words that a thread stores, by place (spill_places.py).
struct Compiled {
  int arch, tile, kind, registers;
  int once, whole, rescale, alibi;
  std::string plan;
};

std::vector<Compiled> read_compiled() {
  std::vector<Compiled> rows;
  std::vector<std::string> names;
  std::string_view text = embedded_registers().front().text;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> cells = csv_cells(line);
    if (names.empty()) {
      names = cells;
      continue;
    }
    const auto cell = [&](std::string_view name) {
      return cells.at(static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin()));
    };
    const auto number = [&](std::string_view name) { return std::atoi(cell(name).c_str()); };
    rows.push_back({number("arch"), number("tile"), number("kind"), number("registers"), number("once_stored"),
                    number("whole_stored"), number("rescale_stored"), number("alibi_stored"), cell("plan")});
  }
  return rows;
}

/// The newest architecture of the file that code for the device is compiled for: 90 means 90a, which runs there alone.
int architecture_of(const DeviceSpec& device) {
  const auto compute_capability = static_cast<int>(device.compute_capability);
  return compute_capability / 10 == 9 ? 90 : compute_capability / 10 == 8 ? 80 : 0;
}

}  // namespace

KernelPlan with_compiled_registers(KernelPlan plan, std::string_view name, const Case& c, const DeviceSpec& device) {
  static const std::vector<Compiled> rows = read_compiled();
  const Sm80Choice kernel = sm80_choice(c);
  const KernelPlan shape = sm80_plan(kernel.tile);
  const bool as_compiled = plan.element_bytes == 2 && plan.tile_m == shape.tile_m && plan.tile_n == shape.tile_n &&
                           plan.num_warps == shape.num_warps && plan.stages == shape.stages;
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const Compiled& r) {
    return r.plan == name && r.arch == architecture_of(device) && r.tile == static_cast<int>(kernel.tile) &&
           r.kind == static_cast<int>(kernel.kind);
  });
  if (!as_compiled || row == rows.end()) return plan;
  plan.known_registers = row->registers;
  plan.spill_words_per_key_tile = row->whole + (c.problem.alibi ? row->alibi : 0);
  plan.spill_words_per_cta = row->once + row->rescale;  // O is rescaled in the first tile, and seldom after it
  return plan;
}

}  // namespace attest
