#include "attest/simulator/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "case_words.h"
#include "embedded.h"
#include "units.h"

namespace attest {
namespace {

using units::bytes, units::time;

/// Our drawing code, in the order in which it runs.
constexpr std::string_view scripts[] = {"format", "chart",     "flow",     "busy",    "roofline", "lengths",
                                        "banks",  "registers", "timeline", "figures", "main"};

std::string_view part(std::string_view name) {
  for (const EmbeddedFile& file : embedded_report_page())
    if (file.name == name) return file.text;
  throw std::logic_error(fmt::format("the page has no part {}", name));
}

/// The case's line with a proper sign between its lengths.
std::string page_words(const Case& c) {
  std::string text = case_words(c);
  if (const std::size_t at = text.find(" x "); at != std::string::npos) text.replace(at, 3, " × ");
  return text;
}

std::string page_time(double us) {
  std::string text = time(us);
  if (text.ends_with("us")) text.replace(text.size() - 2, 1, "µ");
  return text;
}

std::string times(double factor) { return fmt::format("{:.{}f}\u00a0×", factor, factor >= 100 ? 0 : 1); }

/// The bound in words.
std::string_view binding(std::string_view bound) {
  constexpr std::pair<std::string_view, std::string_view> words[] = {
      {"tensor", "the tensor cores"},
      {"exp", "exponentials"},
      {"issue", "instruction issue"},
      {"latency", "latency: no resource comes near its peak"}};
  for (const auto& [name, text] : words)
    if (bound == name) return text;
  return bound;
}

std::string headline(const SimulationReport& r) {
  const double moved = r.dram_read_bytes + r.dram_write_bytes;
  const double unfused = r.unfused.dram_read_bytes + r.unfused.dram_write_bytes;
  if (r.cycles == 0) return "There is nothing to compute: no query sees a key, and no kernel time is predicted.";
  std::string text = fmt::format("{}, bound by {}. ", page_time(r.time_us), binding(r.bound));
  text += fmt::format("{} through DRAM", bytes(moved));
  if (r.walk.dirty_bytes_left >= 0.01 * moved)
    text += fmt::format(" ({} more still in L2 at the end)", bytes(r.walk.dirty_bytes_left));
  text += fmt::format(", {} compulsory", bytes(r.compulsory_bytes));
  if (unfused > 0)
    text += fmt::format("; unfused attention moves {}, {} as many, and takes {} as long", bytes(unfused),
                        times(unfused / std::max(moved, 1.0)), times(r.unfused_speedup));
  text += ".";
  return text;
}

/// `page` with each {{name}} replaced by what stands beside it; replacements are not looked at again.
std::string filled(std::string_view page, const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string result;
  while (true) {
    const std::size_t open = page.find("{{"), close = page.find("}}", open);
    if (close == std::string_view::npos) return result += page;
    const std::string_view name = page.substr(open + 2, close - open - 2);
    const auto value = std::find_if(values.begin(), values.end(), [&](auto& v) { return v.first == name; });
    if (value == values.end()) throw std::logic_error(fmt::format("nothing fills {} in the page", name));
    (result += page.substr(0, open)) += value->second;
    page.remove_prefix(close + 2);
  }
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string result;
  for (const char c : text) switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  return result;
}

std::string script_json(const nlohmann::ordered_json& json) {
  std::string result;
  // ASCII alone, so that U+2028 is escaped too; a '<' occurs only inside strings
  for (const char c : json.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace))
    c == '<' ? result += "\\u003c" : result += c;
  return result;
}

std::string html_report(const SimulationReport& r) {
  std::string draw;
  for (const std::string_view name : scripts) (draw += part(name)) += '\n';
  const KernelPlan& plan = r.plan;
  return filled(
      part("page"),
      {{"title", html_escaped(fmt::format("attest: {} on {}", page_words(r.c), r.device.name))},
       {"case", html_escaped(page_words(r.c))},
       {"place", html_escaped(fmt::format("{}, plan {}: {} × {} tiles, {} warps, {} stage{}", r.device.description,
                                          r.plan_name.empty() ? "without a name" : r.plan_name, plan.tile_m,
                                          plan.tile_n, plan.warps(), plan.stages, plan.stages == 1 ? "" : "s"))},
       {"headline", html_escaped(headline(r))},
       {"style", std::string(part("style"))},
       {"data", script_json(page_data(r))},
       {"library_license", std::string(part("d3_license"))},
       {"library", std::string(part("d3.min"))},
       {"draw", draw}});
}

}  // namespace attest
