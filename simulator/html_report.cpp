#include "attest/simulator/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "html_page.h"
#include "units.h"

namespace attest {
namespace {

using units::bytes;

std::string headline(const SimulationReport& r) {
  const double moved = r.dram_read_bytes + r.dram_write_bytes;
  const double unfused = r.unfused.dram_read_bytes + r.unfused.dram_write_bytes;
  if (r.cycles == 0) return "There is nothing to compute: no query sees a key, and no kernel time is predicted.";
  std::string text = fmt::format("{}, bound by {}. ", page_time(r.time_us), page_bound(r.bound));
  text += fmt::format("{} through DRAM", bytes(moved));
  if (r.walk.dirty_bytes_left >= 0.01 * moved)
    text += fmt::format(" ({} more still in L2 at the end)", bytes(r.walk.dirty_bytes_left));
  text += fmt::format(", {} compulsory", bytes(r.compulsory_bytes));
  if (unfused > 0)
    text += fmt::format("; unfused attention moves {}, {} as many, and takes {} as long", bytes(unfused),
                        page_times(unfused / std::max(moved, 1.0)), page_times(r.unfused_speedup));
  text += ".";
  return text;
}

}  // namespace

std::string html_report(const SimulationReport& r) {
  return html_page(
      {.title = fmt::format("attest: {} on {}", page_words(r.c), r.device.name),
       .heading = page_words(r.c),
       .place = fmt::format("{}, plan {}: {}", r.device.description,
                            r.plan_name.empty() ? "without a name" : r.plan_name, page_tiles(r.plan)),
       .headline = headline(r)},
      "predict_sections",
      {"curve", "table", "flow", "busy", "roofline", "lengths", "banks", "registers", "timeline", "figures", "main"},
      page_data(r));
}

}  // namespace attest
