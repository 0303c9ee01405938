// attest calibrate: a device file for the GPU at hand.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attest/problem/error.h"
#include "attest/problem/text.h"
#include "attest/simulator/calibration.h"
#include "calibrating.h"
#include "commands.h"
#include "output.h"
#include "parse.h"

namespace attest::tools {
namespace {

/// --name, which the device file and all that reads it show.
std::string read_name(const Flags& flags) {
  std::string name = flags.text("--name").value_or("this-gpu");
  if (name.empty()) throw InvalidInput("name", "''", "must not be empty");
  if (!is_printable(name)) throw InvalidInput("name", in_quotes(name), "must be UTF-8 without control characters");
  return name;
}

ExitCode run(const Flags& flags) {
  const Results results(flags);
  const std::string name = read_name(flags);
  const auto out = output_file(flags, "--out");
  if (out) results.refuse_same_file("out", out->path());
  const Calibration measured = calibrate_gpu();
  const DeviceSpec& m = measured.device;
  const DeviceSpec nearest = nearest_device(m.compute_capability, m.num_sms, m.dram_bytes);
  const nlohmann::ordered_json device = to_json(calibrated_device(name, m.name, m, nearest));
  const nlohmann::ordered_json known = to_json(nearest);
  std::string text = fmt::format("{}; what is not measured is as {} has it\n\n{:<30} {:>12} {:>12} {:>7}  {}\n", m.name,
                                 nearest.name, "", "measured", nearest.name, "ratio", "");
  for (const FieldOrigin& origin : m.origins) {
    const auto& now = device["fields"][origin.field]["value"];
    const auto& before = known["fields"][origin.field]["value"];
    const bool comparable = now.is_number() && before != 0;
    constexpr std::size_t longest = 8;
    const auto shown = [](const auto& value) {
      if (value.is_number()) return fmt::format("{:.6g}", value.template get<double>());
      if (value.size() <= longest) return value.dump();
      const auto [least, most] = std::ranges::minmax(value.template get<std::vector<double>>());
      return fmt::format("{:.3g} to {:.3g}", least, most);
    };
    text +=
        fmt::format("{:<30} {:>12} {:>12} {:>7}  {}\n", origin.field, shown(now), shown(before),
                    comparable ? fmt::format("{:.3f}", now.get<double>() / before.get<double>()) : "-", origin.text);
  }
  for (const std::string& missing : measured.missing) text += fmt::format("not measured: {}\n", missing);
  text += fmt::format("as {} has it:", nearest.name);
  for (const auto& [field, entry] : device["fields"].items())
    if (entry.contains("estimated")) text += " " + field;
  text += "\n";
  std::vector<OutputFile::Staged> files;
  if (out) files.push_back(out->stage(device.dump(2) + "\n"));
  results.finish("calibrate", {{"nearest", nearest.name}, {"missing", measured.missing}, {"device", device}}, text,
                 std::move(files));
  return exit_pass;
}

}  // namespace

Command calibrate_command() {
  return {"calibrate", "A device file for the GPU at hand, from micro-benchmarks",
          "  attest calibrate --out this-gpu.json\n"
          "  attest predict --device ./this-gpu.json --seqlen-q 4096 --seqlen-k 4096 --nheads 16 --headdim 128",
          [](Flags& flags) {
            flags.group("Calibration");
            flags.value("--out", "FILE", "Write the device file, which --device of other commands reads");
            flags.value("--name", "NAME", "The device's name in it (this-gpu)");
          },
          run};
}

}  // namespace attest::tools
