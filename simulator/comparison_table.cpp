#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "attest/problem/text.h"
#include "attest/simulator/comparison.h"
#include "case_words.h"
#include "units.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

std::string figure_text(const std::optional<double>& x, std::string_view unit) {
  if (!x) return "-";
  if (unit == "B") return units::bytes(*x);
  if (unit == "us") return units::time(*x);
  if (unit == "%") return fmt::format("{:.1f}%", *x);
  return fmt::format("{:.0f}", *x);
}

/// With so many decimals, or as a power of ten where that would be wider than a column.
std::string decimal(double x, int decimals) {
  return x < 1e5 ? fmt::format("{:.{}f}", x, decimals) : fmt::format("{:.1e}", x);
}

/// "of 0" where something was predicted of what did not happen.
std::string ratio_text(const ComparedFigure& figure) {
  if (const auto ratio = figure.ratio()) return decimal(*ratio, 3);
  return figure.predicted.value_or(0) > 0 && figure.measured == 0 ? "of 0" : "-";
}

Json number(const std::optional<double>& x) { return x ? Json(*x) : Json(nullptr); }

/// The figures that a panel's table has columns for.
constexpr std::pair<std::string_view, std::string_view> columns[] = {
    {"smem_wavefronts", "wavefronts"}, {"sm_read_bytes", "SM read"},
    {"sm_write_bytes", "SM write"},    {"spill_store_bytes", "spill"},
    {"l2_read_bytes", "L2 read"},      {"l2_crossing_bytes", "crossing"},
    {"dram_read_bytes", "DRAM read"},  {"dram_write_bytes", "DRAM wr"},
    {"registers_per_thread", "regs"},  {"cycles", "cycles"},
};

/// Of a mechanism, which a file names, in a line of text.
std::string mechanism_text(std::string_view mechanism) {
  constexpr std::size_t longest = 56;  // and "...", within the column of its errors
  return without_middle(mechanism, longest);
}

const ComparedFigure& figure_of(const Comparison& comparison, std::string_view name) {
  for (const ComparedFigure& figure : comparison.figures)
    if (figure.name == name) return figure;
  throw std::logic_error(fmt::format("no figure is named {}", name));
}

}  // namespace

std::string to_table(const Comparison& comparison) {
  std::string text = fmt::format("{}, kernel {}\n", case_words(comparison.call.c), comparison.call.kernel);
  text += comparison.unpredicted.empty() ? fmt::format("predicted by plan {}\n\n", comparison.plan_name)
                                         : fmt::format("not predicted: {}\n\n", comparison.unpredicted);
  const bool again = comparison.counts > 1;
  if (again)
    text += fmt::format("counted {} times: measured is the mean, from which counts deviate by (standard deviation)\n\n",
                        comparison.counts);
  const auto line = [&](std::string_view name, std::string_view predicted, std::string_view measured,
                        std::string_view deviation, std::string_view ratio, std::string_view counter) {
    text += fmt::format("{:<26}{:>14}{:>14}", name, predicted, measured);
    if (again) text += fmt::format("{:>9}", deviation);
    text += fmt::format("{:>8}  {}\n", ratio, counter);
  };
  line("", "predicted", "measured", "by", "ratio", "counter");
  for (const ComparedFigure& f : comparison.figures)
    line(f.name, figure_text(f.predicted, f.unit), figure_text(f.measured, f.unit),
         f.deviation ? fmt::format("{:.2f}%", 100 * *f.deviation) : "-", ratio_text(f), f.counter);
  return text;
}

std::string to_table(const std::vector<Comparison>& comparisons) {
  std::string text = fmt::format("{:<17}{:<44}", "predicted over measured", "").substr(0, 61);
  for (const auto& [name, title] : columns) text += fmt::format("{:>12}", title);
  text += "\n";
  for (const Comparison& comparison : comparisons) {
    const std::string words = fmt::format("{}, {}", comparison.call.kernel, case_words(comparison.call.c));
    text += fmt::format("{:<17}{:<44}", mechanism_text(comparison.call.mechanism), words.substr(0, 43));
    for (const auto& [name, title] : columns) text += fmt::format("{:>12}", ratio_text(figure_of(comparison, name)));
    text += "\n";
  }
  const auto line = [&](auto over, int decimals, std::string_view mechanism, std::string_view words) {
    text += fmt::format("{:<61}", words);
    for (const auto& [name, title] : columns) {
      const MeanAndMost parts = over(comparisons, name, mechanism);
      text += parts.calls == 0 ? fmt::format("{:>12}", "-")
                               : fmt::format("{:>6}/{:<5}", decimal(100 * parts.mean, decimals),
                                             decimal(100 * parts.most, decimals));
    }
    text += "\n";
  };
  const auto lines = [&](std::string_view heading, auto over, int decimals) {
    text += fmt::format("\n{}\n", heading);
    for (const std::string& mechanism : mechanisms_of(comparisons))
      line(over, decimals, mechanism, mechanism_text(mechanism));
    line(over, decimals, "", "all");
  };
  lines("error in %, mean/most", errors_of, 1);
  std::size_t counts = 1;
  for (const Comparison& comparison : comparisons) counts = std::max(counts, comparison.counts);
  if (counts > 1)
    lines(fmt::format("standard deviation of up to {} counts of a call in %, mean/most", counts), deviations_of, 2);
  return text;
}

nlohmann::ordered_json to_json(const Comparison& comparison) {
  Json figures = Json::array(), launches = Json::array();
  for (const ComparedFigure& f : comparison.figures)
    figures.push_back({{"name", f.name},
                       {"unit", f.unit},
                       {"predicted", number(f.predicted)},
                       {"measured", number(f.measured)},
                       {"deviation", number(f.deviation)},
                       {"ratio", number(f.ratio())},
                       {"error", number(f.error())},
                       {"counter", f.counter},
                       {"model", f.model}});
  for (const MeasuredLaunch& launch : comparison.call.launches)
    launches.push_back({{"function", launch.function}, {"counters", launch.counters}});
  return {{"mechanism", comparison.call.mechanism},
          {"kernel", comparison.call.kernel},
          {"case", to_json(comparison.call.c)},
          {"counts", comparison.counts},
          {"plan", comparison.plan_name},
          {"unpredicted", comparison.unpredicted},
          {"bound", comparison.bound},
          {"figures", figures},
          {"launches", launches}};
}

}  // namespace attest
