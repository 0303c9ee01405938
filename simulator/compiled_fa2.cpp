#include "compiled_fa2.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "attest/plan/catalog.h"
#include "csv.h"
#include "embedded.h"

namespace attest {
namespace {

/// What a kernel is compiled for.
struct Kernel {
  int arch, headdim, tile_m, tile_n, num_warps;
  int causal, local, even_mn, even_k;
  friend auto operator<=>(const Kernel&, const Kernel&) = default;
};

constexpr const char* tiles_apart[] = {"first", "second", "third", "fourth", "fifth"};

Kernel kernel_of(const CsvTable& table, std::size_t line) {
  const auto number = [&](std::string_view name) { return table.number(line, name); };
  return {number("arch"),   number("headdim"), number("tile_m"),  number("tile_n"), number("num_warps"),
          number("causal"), number("local"),   number("even_mn"), number("even_k")};
}

void read_copies(std::map<Kernel, CompiledFa2>& kernels) {
  const CsvTable table(text_of(embedded_measured(), "unseen_copies_fa2"));
  constexpr std::string_view operands = "qkv";
  for (std::size_t i = 0; i < table.lines().size(); ++i) {
    CompiledFa2& kernel = kernels.at(kernel_of(table, i));
    const std::size_t operand = operands.find(table.cell(i, "operand"));
    const std::string& place = table.cell(i, "place");
    const auto tile = static_cast<std::size_t>(std::ranges::find(tiles_apart, place) - std::begin(tiles_apart));
    for (const auto& [to, name] : {std::pair(&kernel.stopped, "copies"), std::pair(&kernel.stale, "stale")}) {
      PlaceCounts& n = to->at(operand);
      n.tiles.resize(kernel.instructions.tiles.size());
      (place == "whole" ? n.whole : place == "enters" ? n.enters : n.tiles.at(tile)) = table.number(i, name);
    }
  }
}

std::map<Kernel, CompiledFa2> read_kernels() {
  const CsvTable table(text_of(embedded_measured(), "registers_fa2_torch"));
  std::map<Kernel, CompiledFa2> kernels;
  for (std::size_t i = 0; i < table.lines().size(); ++i) {
    const auto number = [&](std::string_view name) { return table.number(i, name); };
    const auto by_place = [&](const char* what) {
      const auto at = [&](const char* place) { return number(fmt::format("{}_{}", place, what)); };
      PlaceCounts n;
      n.early = at("early"), n.enters = at("enters"), n.whole = n.masked = at("whole");
      for (const char* tile : tiles_apart)
        if (number(fmt::format("{}_instructions", tile)) > 0) n.tiles.push_back(at(tile));
      return n;
    };
    kernels[kernel_of(table, i)] = {number("registers"),
                                    number("code_bytes"),
                                    {number("frame_words"), number("loop_words"), number("predicated_words")},
                                    {by_place("stored"), by_place("loaded"), by_place("stores"), by_place("loads")},
                                    by_place("instructions"),
                                    0,
                                    {},
                                    {}};
  }
  for (auto& [key, kernel] : kernels) {
    Kernel whole_rows = key;
    whole_rows.even_k = 1;
    kernel.column_instructions = kernel.instructions.whole - kernels.at(whole_rows).instructions.whole;
  }
  read_copies(kernels);
  return kernels;
}

/// The newest one of the wheel that runs on the device; 0 where none does.
int fa2_architecture_of(const DeviceSpec& device) {
  const auto capability = static_cast<int>(device.compute_capability);
  int newest = 0;
  for (const int arch : {80, 86, 90, 100, 120})
    if (arch <= capability && arch / 10 == capability / 10) newest = arch;
  return newest;
}

}  // namespace

const CompiledFa2* compiled_fa2(const KernelPlan& plan, const Case& c, const DeviceSpec& device) {
  static const std::map<Kernel, CompiledFa2> kernels = read_kernels();
  const Problem& p = c.problem;
  if (plan.element_bytes != 2 || c.num_splits > 1 || c.layout.page_size > 0) return nullptr;
  const auto [causal, local] = fa2_mask(p);
  const int headdim = plan.columns(Operand::q);
  const auto found = kernels.find({fa2_architecture_of(device), headdim, plan.tile_m, plan.tile_n, plan.num_warps,
                                   causal, local, fa2_is_even(p, plan), p.headdim == headdim});
  return found == kernels.end() ? nullptr : &found->second;
}

double of_all_ctas(const PlaceCounts& n, const KeyRuns& runs, std::int64_t key_tiles) {
  double sum = static_cast<double>(n.enters) * static_cast<double>(runs.longer.at(n.tiles.size()));
  for (std::size_t i = 0; i < n.tiles.size(); ++i) {
    sum += static_cast<double>(n.tiles[i]) * static_cast<double>(runs.longer[i]);
    key_tiles -= runs.longer[i];
  }
  return sum + static_cast<double>(n.whole) * static_cast<double>(key_tiles);
}

double walked_once(const PlaceCounts& n, const KeyRuns& runs) {
  const std::int64_t in_loop = runs.longer.at(n.tiles.size());
  std::int64_t key_tiles = in_loop;
  for (std::size_t i = 0; i < n.tiles.size(); ++i) key_tiles += runs.longer[i];
  return of_all_ctas(n, runs, key_tiles) / static_cast<double>(ctas_of(runs));
}

}  // namespace attest
