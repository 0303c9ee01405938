#include "attest/fuzz/in_flight.h"

#include <algorithm>
#include <ctime>
#include <iterator>

#include "attest/fuzz/properties.h"

namespace attest {
namespace {

FlightRecord* record = nullptr;

}  // namespace

std::int64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

std::string_view to_string(KernelCall call) {
  constexpr std::string_view names[] = {"capability",   "numerics", "unsupported",   "run",
                                        "run_backward", "plan",     "device_seconds"};
  const auto index = static_cast<std::size_t>(call);
  return index < std::size(names) ? names[index] : "?";
}

void set_flight_record(FlightRecord* shared) { record = shared; }

void name_in_flight(std::string_view property) {
  if (!record) return;
  const auto all = properties();
  const auto at = std::find_if(all.begin(), all.end(), [&](const Property& p) { return p.name == property; });
  record->property = at == all.end() ? -1 : static_cast<std::int32_t>(at - all.begin());
  record->own_since_ns = monotonic_ns();
}

InFlight::InFlight(KernelCall call) {
  if (!record) return;
  record->kernel_call = static_cast<std::int32_t>(call);
  record->kernel_since_ns = monotonic_ns();
}

void renew_in_flight() {
  if (record) record->kernel_since_ns = monotonic_ns();
}

InFlight::~InFlight() {
  if (!record) return;
  const std::int64_t now = monotonic_ns(), took = now - record->kernel_since_ns;
  if (record->own_since_ns != 0) record->own_since_ns = now;  // before it is seen to have left the kernel
  record->kernel_since_ns = 0;
  record->longest_run_ns = std::max(record->longest_run_ns.load(), took);
}

}  // namespace attest
