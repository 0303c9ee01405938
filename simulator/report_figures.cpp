#include <cmath>
#include <nlohmann/json.hpp>

#include "attest/simulator/sweep.h"

namespace attest {
namespace {

using R = SimulationReport;

constexpr ReportFigure figures[] = {
    {"time_us", [](const R& r) { return r.time_us; }},
    {"cycles", [](const R& r) { return std::round(r.cycles); }},
    {"unfused_time_us", [](const R& r) { return r.unfused.time_us; }},
    {"unfused_time_over_fused", [](const R& r) { return r.unfused_speedup; }},
    {"dram_read_bytes", [](const R& r) { return r.dram_read_bytes; }},
    {"dram_write_bytes", [](const R& r) { return r.dram_write_bytes; }},
    {"compulsory_bytes", [](const R& r) { return r.compulsory_bytes; }},
    {"unfused_dram_bytes", [](const R& r) { return r.unfused.dram_read_bytes + r.unfused.dram_write_bytes; }},
    {"hbm_reduction_vs_unfused", [](const R& r) { return r.hbm_reduction_vs_unfused; }},
    {"sm_read_bytes", [](const R& r) { return r.sm_read_bytes; }},
    {"sm_write_bytes", [](const R& r) { return r.sm_write_bytes; }},
    {"l2_read_bytes", [](const R& r) { return r.l2_read_bytes; }},
    {"l2_crossing_bytes", [](const R& r) { return r.l2_crossing_bytes; }},
    {"smem_wavefronts", [](const R& r) { return r.smem_wavefronts; }},
    {"smem_wavefronts_ideal", [](const R& r) { return r.smem_wavefronts_ideal; }},
    {"smem_bytes_per_cta", [](const R& r) { return double(r.smem_bytes_per_cta); }},
    {"registers_per_thread", [](const R& r) { return double(r.registers_per_thread); }},
    {"spill_bytes_per_thread", [](const R& r) { return double(r.spill_bytes_per_thread); }},
    {"spill_store_bytes", [](const R& r) { return r.spill_store_bytes; }},
    {"spill_load_bytes", [](const R& r) { return r.spill_load_bytes; }},
    {"ctas_per_sm", [](const R& r) { return double(r.ctas_per_sm); }},
    {"flops", [](const R& r) { return r.flops; }},
    {"flops_executed", [](const R& r) { return r.flops_executed; }},
    {"exp_count", [](const R& r) { return r.exp_count; }},
    {"xu_instructions", [](const R& r) { return r.xu_instructions; }},
};

}  // namespace

std::span<const ReportFigure> report_figures() { return figures; }

nlohmann::ordered_json figures_json(const SimulationReport& report) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const ReportFigure& figure : figures) {
    const double x = figure.of(report);
    if (x == std::floor(x) && std::abs(x) < 0x1p53)
      json[std::string(figure.name)] = std::llround(x);
    else
      json[std::string(figure.name)] = x;
  }
  json["bound"] = report.bound;
  json["occupancy_limit"] = report.occupancy.limit;
  return json;
}

}  // namespace attest
