#include "compiled_registers.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "attest/plan/catalog.h"
#include "csv.h"
#include "embedded.h"

namespace attest {
namespace {

struct Compiled {
  int arch, tile, kind, registers, stack_bytes;
};

std::vector<Compiled> read_compiled() {
  std::vector<Compiled> rows;
  std::string_view text = embedded_registers().front().text;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty() || line[0] == '#' || line[0] == 'a') continue;  // comments and names
    std::array<int, 5> x{};
    const std::vector<std::string> cells = csv_cells(line);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::atoi(cells.at(i).c_str());
    rows.push_back({x[0], x[1], x[2], x[3], x[4]});
  }
  return rows;
}

/// The newest architecture of the file that code for the device is compiled for: 90 means 90a, which runs there alone.
int architecture_of(const DeviceSpec& device) {
  const auto compute_capability = static_cast<int>(device.compute_capability);
  return compute_capability / 10 == 9 ? 90 : compute_capability / 10 == 8 ? 80 : 0;
}

}  // namespace

KernelPlan with_compiled_registers(KernelPlan plan, const Case& c, const DeviceSpec& device) {
  static const std::vector<Compiled> rows = read_compiled();
  auto [tile, kind] = sm80_choice(c);
  if (is_short(tile)) kind = Sm80Kind::general;
  const KernelPlan shape = sm80_plan(tile);
  const bool as_compiled = plan.element_bytes == 2 && plan.tile_m == shape.tile_m && plan.tile_n == shape.tile_n &&
                           plan.num_warps == shape.num_warps && plan.stages == shape.stages;
  const auto row = std::find_if(rows.begin(), rows.end(), [&, tile = tile, kind = kind](const Compiled& r) {
    return r.arch == architecture_of(device) && r.tile == static_cast<int>(tile) && r.kind == static_cast<int>(kind);
  });
  if (!as_compiled || row == rows.end()) return plan;
  plan.known_registers = row->registers;
  plan.spill_words_per_cta = row->stack_bytes / 4;
  return plan;
}

}  // namespace attest
