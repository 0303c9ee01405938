// attest calibrate: a device file for the GPU at hand.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "calibrating.h"
#include "commands.h"
#include "output.h"

namespace attest::tools {
namespace {

ExitCode run(const Flags& flags) {
  const Results results(flags);
  const auto out = output_file(flags, "--out");
  if (out) results.refuse_same_file("out", out->path());
  const Calibration measured = calibrate_gpu();
  const auto whole = [&](std::string_view name) {
    for (const CalibratedField& field : measured.fields)
      if (field.name == name) return static_cast<std::int64_t>(field.value);
    throw std::logic_error(std::string("nobody asked for ") + std::string(name));
  };
  const DeviceSpec nearest = nearest_device(whole("compute_capability"), whole("num_sms"), whole("dram_bytes"));
  const nlohmann::ordered_json device =
      calibrated_device(flags.text("--name").value_or("this-gpu"), measured.gpu, measured.fields, nearest);
  const nlohmann::ordered_json known = to_json(nearest);
  std::string text = fmt::format("{}; what is not measured is as {} has it\n\n{:<30} {:>12} {:>12} {:>7}  {}\n",
                                 measured.gpu, nearest.name, "", "measured", nearest.name, "ratio", "");
  for (const CalibratedField& field : measured.fields) {
    const double before = known["fields"][field.name]["value"].get<double>();
    text += fmt::format("{:<30} {:>12.6g} {:>12.6g} {:>7}  {}\n", field.name, field.value, before,
                        before == 0 ? "-" : fmt::format("{:.3f}", field.value / before), field.source);
  }
  for (const std::string& missing : measured.missing) text += fmt::format("not measured: {}\n", missing);
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
