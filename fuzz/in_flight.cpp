#include "attest/fuzz/in_flight.h"

#include <algorithm>
#include <ctime>

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

void set_flight_record(FlightRecord* shared) { record = shared; }

void name_in_flight(std::string_view property) {
  if (!record) return;
  const auto all = properties();
  const auto at = std::find_if(all.begin(), all.end(), [&](const Property& p) { return p.name == property; });
  record->property = at == all.end() ? -1 : static_cast<std::int32_t>(at - all.begin());
  record->property_since_ns = monotonic_ns();
}

InFlight::InFlight() {
  if (record) record->kernel_since_ns = monotonic_ns();
}

InFlight::~InFlight() {
  if (!record) return;
  const std::int64_t took = monotonic_ns() - record->kernel_since_ns;
  record->kernel_since_ns = 0;
  record->longest_run_ns = std::max(record->longest_run_ns.load(), took);
}

}  // namespace attest
