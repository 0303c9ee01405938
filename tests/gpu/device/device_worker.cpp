// A worker whose kernel is planted on the device: "crashes" writes to an illegal address, "takes_too_much" cannot be
// launched.
#include "attest/fuzz/worker.h"
#include "planted.h"

int main() {
  return attest::serve_worker([](std::string_view name) {
    const auto plant = name == "crashes" ? attest::Plant::crashes : attest::Plant::takes_too_much;
    return attest::make_device_kernel(std::make_unique<attest::PlantedForward>(plant));
  });
}
