#include "measure_flags.h"

#include <fmt/format.h>

#include <ctime>

#include "attest/problem/error.h"
#include "attest/problem/text.h"
#include "attest/simulator/calibration.h"
#include "case_flags.h"
#include "measuring.h"
#include "parse.h"

namespace attest::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

}  // namespace

Profiler read_via(const Flags& flags) {
  const std::string via = flags.text("--via").value_or("cupti");
  const std::optional<Profiler> profiler = profiler_called(via);
  if (!profiler) throw InvalidInput("via", in_quotes(via), "is none of cupti, ncu");
  return *profiler;
}

Provenance provenance(const Flags& flags) {
  Provenance how = measuring_gpu();
  how.date = today(), how.via = read_via(flags), how.warm = flags.given("--warm");
  return how;
}

std::optional<DeviceSpec> named_device(const Flags& flags) {
  const auto named = flags.text("--device");
  if (!named) return std::nullopt;
  refuse_unknown("device", *named, device_names());
  DeviceSpec device = load_device(*named);
  if (device.kind != DeviceKind::gpu)
    throw InvalidInput("device", in_quotes(*named), "has cube and vector cores; counters are a GPU's");
  return device;
}

DeviceSpec device_of(const Flags& flags, const Provenance& how) {
  if (std::optional<DeviceSpec> named = named_device(flags)) return *named;
  constexpr const char* instead = "give one with --device, or what `attest calibrate` writes";
  if (how.gpu.empty()) throw InvalidInput("device", "the GPU", fmt::format("is not named by the file; {}", instead));
  std::optional<DeviceSpec> called = device_called(how.gpu);
  if (!called)
    throw InvalidInput("device", in_quotes(how.gpu),
                       fmt::format("is described by no device of `attest devices`; {}", instead));
  const auto refuse_other = [&](std::int64_t DeviceSpec::*field, std::int64_t here) {
    if (here != 0 && here != (*called).*field)
      throw InvalidInput("device", in_quotes(how.gpu),
                         fmt::format("has {} {}, {} has {}; {}", device_field_name(field), here, called->name,
                                     (*called).*field, instead));
  };
  refuse_other(&DeviceSpec::compute_capability, how.compute_capability);
  refuse_other(&DeviceSpec::num_sms, how.num_sms);
  return device_of_chip(*std::move(called), how.gpc_sides);
}

std::int64_t read_repeats(const Flags& flags) { return flags.integer("--repeats", 1, 1000).value_or(1); }

std::vector<MeasuredCall> measure(const std::vector<MeasuredCall>& calls, std::int64_t repeats, const Provenance& how,
                                  bool progress) {
  std::vector<MeasuredCall> counts;
  for (std::int64_t i = 0; i < repeats; ++i) counts.insert(counts.end(), calls.begin(), calls.end());
  (how.via == Profiler::ncu ? measure_with_ncu : measure_with_cupti)(counts, *how.warm, progress);
  return counts;
}

Json provenance_json(const Provenance& how) {
  return {{"measured", to_text(how)},
          {"gpu", how.gpu.empty() ? Json() : Json(how.gpu)},
          {"gpc_sides", how.gpc_sides.empty() ? Json() : Json(how.gpc_sides)},
          {"via", how.via ? Json(to_string(*how.via)) : Json()},
          {"warm", how.warm ? Json(*how.warm) : Json()}};
}

Json provenance_json(const Provenance& how, const DeviceSpec& device) {
  Json json = provenance_json(how);
  json["device"] = device.name;
  json["device_gpc_sides"] = device.gpc_sides;
  return json;
}

std::string provenance_text(const Provenance& how) {
  constexpr std::size_t longest = 240;  // half as much again as attest itself writes
  return without_middle(to_text(how), longest);
}

std::string heading(const Provenance& how, const DeviceSpec& device) {
  const std::string measured = provenance_text(how);
  return fmt::format("{}{}predicted for {}", measured, measured.empty() ? "" : "; ", device.name);
}

}  // namespace attest::tools
