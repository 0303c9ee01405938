// Counts the wavefronts and sectors of warp instructions on shared memory, pattern by pattern: CSV to standard output.
#include <cstdio>
#include <ctime>
#include <exception>
#include <map>

#include "attest/counters/counter_reader.h"
#include "attest/hardware/device.h"
#include "bank_patterns.h"

namespace {

using namespace attest;
using namespace attest::hardware;

constexpr int repeats = 64;

const AccessInstruction& instruction_of(const BankPattern& pattern) {
  for (const AccessInstruction& i : access_instructions())
    if (pattern.instruction == i.name) return i;
  throw std::logic_error("no kernel for " + pattern.instruction);
}

/// Every pattern once, a launch each, on every SM.
class Accesses : public CountedWork {
 public:
  explicit Accesses(const std::vector<BankPattern>& patterns)
      : patterns_(patterns),
        global_(kAccessGlobalBytes + static_cast<std::size_t>(repeats) * kAccessGlobalStep),
        out_(1) {
    check(cudaDeviceGetAttribute(&sms_, cudaDevAttrMultiProcessorCount, 0));
  }
  int sms() const { return sms_; }
  void launch() override {
    for (const BankPattern& pattern : patterns_)
      issue_accesses(instruction_of(pattern), pattern.lanes, sms_, repeats, global_.data(), out_.data(), nullptr);
  }
  void wait() override { check(cudaDeviceSynchronize()); }
  void empty_l2() override { wait(); }  // what L2 holds changes none of the counters below

 private:
  const std::vector<BankPattern>& patterns_;
  int sms_ = 0;
  DeviceArray<char> global_;
  DeviceArray<std::uint32_t> out_;
};

const std::vector<std::string> metrics = {
    "smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared.sum",
    "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts.sum",
    "l1tex__m_xbar2l1tex_read_bytes.sum",
    "smsp__inst_executed_op_ldgsts.sum",
    "smsp__inst_executed_op_ldgsts_pred_off_all.sum",
};

void print_list(const std::uint32_t (&numbers)[32], bool there) {
  std::printf(",");
  for (int lane = 0; there && lane < 32; ++lane) std::printf("%s%u", lane == 0 ? "" : " ", numbers[lane]);
}

void print_provenance(std::size_t count, int issued) {
  cudaDeviceProp device{};
  check(cudaGetDeviceProperties(&device, 0));
  int driver = 0;
  check(cudaDriverGetVersion(&driver));
  const std::time_t now = std::time(nullptr);
  char date[16];
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  std::printf("# bank_probe: %zu patterns, %d warp instructions each; %s, CUDA %d.%d of the driver, %s\n", count,
              issued, device.name, driver / 1000, driver % 1000 / 10, date);
}

void measure() {
  const std::vector<BankPattern> patterns = bank_patterns();
  CounterReader reader(metrics);
  Accesses accesses(patterns);
  const std::vector<LaunchCounters> launches = reader.read(accesses, false);
  if (launches.size() != patterns.size()) throw std::runtime_error("a launch was not counted");
  print_provenance(patterns.size(), repeats * accesses.sms());
  std::printf("group,instruction,pattern,bytes,active,present,shared,global,issued");
  for (const std::string& metric : metrics) std::printf(",%s", metric.c_str());
  std::printf("\n");
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const BankPattern& p = patterns[i];
    std::printf("%s,%s,\"%s\",%d,%u,%u", p.group.c_str(), p.instruction.c_str(), p.name.c_str(),
                instruction_of(p).bytes, p.lanes.active, p.lanes.present);
    print_list(p.lanes.shared, true);
    print_list(p.lanes.global, p.instruction.find("cp.async") != std::string::npos);
    std::printf(",%d", repeats * accesses.sms());
    for (const std::string& metric : metrics) std::printf(",%.0f", launches[i].values.at(metric));
    std::printf("\n");
  }
}

}  // namespace

int main() try {
  measure();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bank_probe: %s\n", error.what());
  return 1;
}
