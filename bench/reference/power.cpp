// What each rule can see: planted faults in the CPU kernel, and the share that each of the budgets' rules, each probe
// and the rules of other projects' tests accuse. The figures of docs/numerics.md.
//
//   power [--quick] [--headdim N] [--json FILE]
//
// Exits with 1 if the right kernel is accused by any of ours, or a fault beyond the outputs' own rounding by none.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "power_measure.h"

namespace attest::power {
namespace {

nlohmann::ordered_json to_json(const Shares& shares) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [name, share] : shares.all()) json[name] = {share.over, share.of};
  return json;
}

nlohmann::ordered_json to_json(const Cell& cell) {
  return {{"fault", cell.fault},
          {"keys", cell.keys},
          {"headdim", cell.headdim},
          {"causal", cell.causal},
          {"dtype", to_string(cell.dtype)},
          {"effect_o", cell.effect_o},
          {"effect_lse", cell.effect_lse},
          {"rows", to_json(cell.rows)},
          {"problems", to_json(cell.ours)},
          {"peers", to_json(cell.peers)}};
}

nlohmann::ordered_json to_json(const Detectable& d) {
  return {{"keys", d.keys},
          {"dtype", to_string(d.dtype)},
          {"scale_by_budgets", d.scale_by_budgets},
          {"scale_by_lookup", d.scale_by_lookup},
          {"output_bits_by_budgets", d.output_bits_by_budgets},
          {"output_bits_by_probe", d.output_bits_by_probe}};
}

// Full and causal together.
struct Line {
  std::string fault;
  std::int64_t keys = 0;
  std::vector<const Cell*> of_dtype[2];
};

std::string percent(const Line& line, const std::string& name, Shares Cell::*group) {
  std::string text;
  for (const auto& cells : line.of_dtype) {
    Share sum;
    for (const Cell* cell : cells)
      for (const auto& [known, share] : (cell->*group).all())
        if (known == name) sum.over += share.over, sum.of += share.of;
    if (!text.empty()) text += "/";
    const double value = 100.0 * static_cast<double>(sum.over) / static_cast<double>(sum.of);
    text += sum.of == 0                       ? "-"
            : sum.over == 0                   ? "0"
            : value < 1                       ? "<1"
            : value > 99 && sum.over < sum.of ? ">99"
                                              : fmt::format("{:.0f}", value);
  }
  return text;
}

std::string effect(const Line& line, double Cell::*of) {
  std::string text;
  for (const auto& cells : line.of_dtype) {
    double largest = 0;
    for (const Cell* cell : cells) largest = std::max(largest, cell->*of);
    if (!text.empty()) text += "/";
    text += largest < 1000 ? fmt::format("{:.2g}", largest) : fmt::format("{:.0e}", largest);
  }
  return text;
}

void print(const std::vector<Cell>& cells) {
  std::vector<Line> lines;
  std::vector<std::pair<std::string, Shares Cell::*>> columns;
  for (const Cell& cell : cells) {
    const auto same = [&](const Line& l) { return l.fault == cell.fault && l.keys == cell.keys; };
    auto line = std::find_if(lines.begin(), lines.end(), same);
    if (line == lines.end()) line = lines.insert(lines.end(), {cell.fault, cell.keys, {}});
    line->of_dtype[cell.dtype == Dtype::fp16].push_back(&cell);
    const auto add = [&](Shares Cell::*group) {
      for (const auto& [name, share] : (cell.*group).all()) {
        const std::pair<std::string, Shares Cell::*> column{name, group};
        const bool of_rows = std::find(columns.begin(), columns.end(), std::pair{name, &Cell::rows}) != columns.end();
        if (!of_rows && std::find(columns.begin(), columns.end(), column) == columns.end()) columns.push_back(column);
      }
    };
    add(&Cell::rows);
    add(&Cell::ours);
    add(&Cell::peers);
  }
  // One fault after another, fewest keys first.
  std::vector<const Line*> order;
  for (const PlantedFault& fault : planted_faults())
    for (const Line& line : lines)
      if (line.fault == fault.name) order.push_back(&line);
  std::stable_sort(columns.begin(), columns.end(), [](const auto& a, const auto& b) {
    const auto rank = [](const auto& x) { return x.second == &Cell::rows ? 0 : x.second == &Cell::ours ? 1 : 2; };
    return rank(a) < rank(b);
  });
  std::string head = "| fault | keys | on O | on LSE |", rule = "|---|---|---|---|";
  for (const auto& [name, group] : columns) head += " " + name + " |", rule += "---|";
  fmt::print("{}\n{}\n", head, rule);
  for (const Line* line : order) {
    fmt::print("| {} | {} | {} | {} |", line->fault, line->keys, effect(*line, &Cell::effect_o),
               effect(*line, &Cell::effect_lse));
    for (const auto& [name, group] : columns) fmt::print(" {} |", percent(*line, name, group));
    fmt::print("\n");
  }
}

// What must hold whatever the figures; says where it does not.
bool holds(const Cell& cell) {
  const std::string where =
      fmt::format("{}, {} keys, {}{}", cell.fault, cell.keys, to_string(cell.dtype), cell.causal ? ", causal" : "");
  if (cell.fault == "none") {
    for (const auto& [name, share] : cell.ours.all())
      if (share.over > 0) return fmt::print(stderr, "{}: {} accuses the right kernel\n", where, name), false;
    return true;
  }
  for (const auto& [name, share] : cell.ours.all())
    if (name == together && share.over < share.of && cell.beyond_rounding())
      return fmt::print(stderr, "{}: seen in {} of {} problems\n", where, share.over, share.of), false;
  return true;
}

int run(int argc, char** argv) {
  Grid grid;
  std::string json_file;
  bool quick = false;
  for (int n = 1; n < argc; ++n) {
    const std::string flag = argv[n];
    if (flag == "--quick") {
      quick = true;
    } else if (flag == "--headdim" && n + 1 < argc) {
      grid.headdim = std::atoi(argv[++n]);
    } else if (flag == "--json" && n + 1 < argc) {
      json_file = argv[++n];
    } else {
      fmt::print(stderr, "usage: power [--quick] [--headdim N] [--json FILE]\n");
      return 2;
    }
  }
  if (grid.headdim < 16 || grid.headdim > 256) return fmt::print(stderr, "headdim is outside 16 to 256\n"), 2;
  if (quick) grid.keys = {256, 1024}, grid.problems = 1, grid.most_keys_of_many_rows = 256;

  std::vector<Cell> cells;
  std::vector<Detectable> sizes;
  bool good = true;
  for (const std::int64_t keys : grid.keys)
    for (const Dtype dtype : grid.dtypes) {
      for (const bool causal : {false, true}) {
        fmt::print(stderr, "{} keys, {}{}\n", keys, to_string(dtype), causal ? ", causal" : "");
        for (Cell& cell : measure(grid, keys, causal, dtype)) {
          good &= holds(cell);
          cells.push_back(std::move(cell));
        }
      }
      if (!quick) sizes.push_back(detectable(grid, keys, dtype));
    }
  fmt::print(
      "headdim {}, {} queries; per cent, bf16/fp16, full and causal together; O bound to z_LSE: of rows (G: of "
      "128 rows together), others of problems\n\n",
      grid.headdim, grid.seqlen_q);
  print(cells);
  for (const Detectable& d : sizes)
    fmt::print(
        "{} keys, {}: smallest error of the scale seen: {:.1e} by the budgets, {:.1e} by lookup; most bits of O "
        "between tiles seen as too few: {} by the budgets, {} by accumulator\n",
        d.keys, to_string(d.dtype), d.scale_by_budgets, d.scale_by_lookup, d.output_bits_by_budgets,
        d.output_bits_by_probe);
  if (!json_file.empty()) {
    nlohmann::ordered_json json{{"schema", "attest/power/1"}, {"cells", nlohmann::ordered_json::array()}};
    for (const Cell& cell : cells) json["cells"].push_back(to_json(cell));
    for (const Detectable& d : sizes) json["detectable"].push_back(to_json(d));
    std::ofstream(json_file) << json.dump(1) << "\n";
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace attest::power

int main(int argc, char** argv) { return attest::power::run(argc, argv); }
