// One call into each library: a reference, a prediction, and a campaign against a kernel of somebody else's.
#include <attest/fuzz/campaign.h>
#include <attest/fuzz/kernels.h>
#include <attest/problem/error.h>
#include <attest/reference/forward.h>
#include <attest/simulator/report.h>

#include <cmath>
#include <cstdio>

int main() {
  attest::Case c;
  c.inputs = attest::Distribution::zero_q;
  c.problem.seqlen_q = 4;
  c.problem.seqlen_k = 16;
  const attest::Forward forward = attest::forward(c.problem, attest::make_inputs(c));
  std::printf("lse %d\n", std::abs(forward.lse.values[0] - std::log(16.0)) < 1e-12);

  const attest::DeviceSpec device = attest::load_device("h100");
  const attest::SimulationReport report = attest::simulate(c, attest::plan_named("attest", c, device), device);
  std::printf("bytes %d\n", report.sm_read_bytes >= report.compulsory_bytes / 2);

  attest::CampaignOptions options;
  options.cases = 20;
  const attest::CampaignResult result = attest::run_campaign([] { return attest::make_kernel("cpu"); }, options);
  std::printf("cases %d\n", result.failed == 0 && result.passed + result.unsupported == 20);

  c.problem.seqlen_q = -5;
  try {
    attest::validate(c);
  } catch (const attest::InvalidInput& error) {
    std::puts(error.what());
  }
}
