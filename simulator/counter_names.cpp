// The counters that are read; what the two profilers make of each is compared in docs/results/h200-measure.md.
#include "attest/simulator/measured_call.h"

namespace attest {
namespace {

constexpr const char* both[] = {"dram__bytes_read.sum",
                                "dram__bytes_write.sum",
                                "l1tex__m_xbar2l1tex_read_bytes.sum",
                                "l1tex__m_l1tex2xbar_write_bytes.sum",
                                "lts__t_sectors_srcunit_tex_op_read.sum",
                                "lts__t_sectors_srcunit_tex_op_write.sum",
                                "lts__t_sectors_srcunit_ltcfabric.sum",
                                "smsp__inst_executed_op_local_ld.sum",
                                "smsp__inst_executed_op_local_st.sum",
                                "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
                                "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
                                "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
                                "sm__inst_executed_pipe_xu.sum",
                                "sm__warps_active.avg.pct_of_peak_sustained_active",
                                "sm__cycles_elapsed.max",
                                "gpu__time_duration.sum"};

// ncu sums up by instruction what CUPTI has as a counter of the same instructions.
constexpr std::pair<const char*, const char*> renamed[] = {
    {"smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared.sum", "memory_l1_wavefronts_shared"}};

constexpr const char* only_ncu[] = {"memory_l1_wavefronts_shared_ideal", "launch__registers_per_thread",
                                    "launch__shared_mem_per_block", "launch__grid_size", "launch__block_size"};

}  // namespace

std::string_view ncu_name(std::string_view cupti_name) {
  for (const auto& [cupti, ncu] : renamed)
    if (cupti == cupti_name) return ncu;
  return cupti_name;
}

std::vector<std::string> cupti_counters() {
  std::vector<std::string> names(std::begin(both), std::end(both));
  for (const auto& [cupti, ncu] : renamed) names.emplace_back(cupti);
  return names;
}

std::vector<std::string> ncu_counters() {
  std::vector<std::string> names(std::begin(both), std::end(both));
  for (const auto& [cupti, ncu] : renamed) names.emplace_back(ncu);
  names.insert(names.end(), std::begin(only_ncu), std::end(only_ncu));
  return names;
}

}  // namespace attest
