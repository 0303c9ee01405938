// attest calibrate: a device file for the GPU at hand.
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "attest/problem/error.h"
#include "attest/problem/text.h"
#include "attest/simulator/calibration.h"
#include "calibrating.h"
#include "calibration_report.h"
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
  const CalibrationReport report = report_of(measured, nearest, name);
  std::vector<OutputFile::Staged> files;
  if (out) files.push_back(out->stage(report.json["device"].dump(2) + "\n"));
  results.finish("calibrate", report.json, report.text, std::move(files));
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
