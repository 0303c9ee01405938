// What each SM gets of L2 when all of them, or some, ask for as much as they can. CSV to standard output.
//
//     l2_shares > docs/results/h100/l2_shares.csv
#include "attest/hardware/l2_shares.h"

#include <cstdio>
#include <utility>
#include <vector>

#include "attest/hardware/device.h"
#include "attest/hardware/placement.h"

namespace attest::hardware {
namespace {

void measure() {
  const std::vector<SmPlace> sms = locate_sms();
  std::printf("kind,who,sm,gpc,side,bytes_a_clock\n");
  for (const auto& [kind, name] : {std::pair{L2Request::local_store, "local_store"},
                                   {L2Request::local_store_and_load, "local_store_and_load"},
                                   {L2Request::store, "store"},
                                   {L2Request::cp_async, "cp_async"}}) {
    const auto rows = [&](const char* who, auto chosen) {
      std::vector<bool> asks;
      for (std::size_t sm = 0; sm < sms.size(); ++sm) asks.push_back(chosen(sm));
      const std::vector<double> a_clock = l2_shares(kind, asks);
      for (std::size_t sm = 0; sm < sms.size(); ++sm)
        if (asks[sm]) std::printf("%s,%s,%zu,%d,%d,%.2f\n", name, who, sm, sms[sm].gpc, sms[sm].side, a_clock[sm]);
    };
    rows("all", [](std::size_t) { return true; });
    rows("gpc", [&](std::size_t sm) { return sms[sm].gpc == sms[0].gpc; });
    rows("tpc", [](std::size_t sm) { return sm < 2; });
    rows("one", [](std::size_t sm) { return sm == 0; });
  }
}

}  // namespace
}  // namespace attest::hardware

int main() { return attest::hardware::run("l2_shares", &attest::hardware::measure); }
