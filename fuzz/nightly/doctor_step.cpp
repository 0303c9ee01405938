// What there is to run, and on what. Everything is asked of processes: a driver that hangs or crashes takes none of
// ours along, and a GPU in exclusive mode stays free for the workers.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "attest/problem/error.h"
#include "attest/problem/file.h"
#include "attest/problem/find_program.h"
#include "steps.h"

namespace attest {
namespace {

using nlohmann::json;

constexpr double look_seconds = 60;  // a driver that has to be loaded first takes seconds

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown CPU";
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Of the first GPU; empty where nvidia-smi is not there or refuses.
std::string ask_smi(const std::string& query) {
  if (find_program("nvidia-smi").empty()) return "";
  const Ended ended = run_until_stopped({"nvidia-smi", "--id=0", query, "--format=csv,noheader"}, look_seconds);
  return ended.good() ? ended.out : "";
}

}  // namespace

json attest_json(std::vector<std::string> arguments, double seconds, Ended& ended) {
  std::string folder = (std::filesystem::temp_directory_path() / "attest_nightly_XXXXXX").string();
  if (!::mkdtemp(folder.data())) throw EnvironmentError("no temporary folder can be made");
  const std::filesystem::path file = std::filesystem::path(folder) / "report.json";
  arguments.insert(arguments.end(), {"--json", file.string()});
  ended = run_attest_itself(std::move(arguments), seconds);
  json report;
  try {
    constexpr std::size_t most = std::size_t{1} << 28;
    if (std::filesystem::exists(file)) report = json::parse(read_file("report", file, most));
  } catch (const json::exception&) {  // ours wrote it whole or not at all
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return report;
}

std::vector<std::string> gpu_kernels(const std::vector<std::string>& kernels) {
  std::vector<std::string> on_gpu;
  for (const std::string& kernel : kernels) {
    Ended ended;
    const json record = attest_json({"kernels", "--kernel", kernel}, look_seconds, ended);
    if (!record.is_null() && record.at("kernels").at(0).at("device") != "cpu") on_gpu.push_back(kernel);
  }
  return on_gpu;
}

Facts look_around() {
  Facts facts;
  facts.machine.host = host_name();
  Ended ended;
  const json doctor = attest_json({"doctor"}, look_seconds, ended);
  if (doctor.is_null())
    throw EnvironmentError(fmt::format("attest doctor: {}: {}", ended.how(), last_words(ended.out)));
  const json kernels = attest_json({"kernels"}, look_seconds, ended);
  if (kernels.is_null())
    throw EnvironmentError(fmt::format("attest kernels: {}: {}", ended.how(), last_words(ended.out)));
  for (const json& kernel : kernels.at("kernels")) {
    const auto name = kernel.at("name").get<std::string>(), why = kernel.at("unavailable").get<std::string>();
    if (why.empty())
      facts.kernels.push_back(name);
    else
      facts.unavailable.emplace_back(name, why);
  }
  facts.no_gpu = doctor.at("cuda_unavailable").get<std::string>();
  if (facts.no_gpu.empty() && doctor.at("gpus").empty()) facts.no_gpu = "no GPU is here";
  if (!facts.no_gpu.empty()) {
    facts.machine.device = cpu_name();
    facts.machine.toolkit = doctor.at("compiler").get<std::string>();
    return facts;
  }
  facts.machine.device = doctor.at("gpus").at(0).at("name").get<std::string>();
  facts.machine.toolkit = "CUDA " + doctor.at("cuda_runtime").get<std::string>();
  facts.machine.driver = first_line(ask_smi("--query-gpu=driver_version"));
  if (facts.machine.driver.empty()) facts.machine.driver = doctor.at("cuda_driver").get<std::string>();
  facts.gpu_busy = first_line(ask_smi("--query-compute-apps=pid,process_name,used_memory"));
  return facts;
}

Part doctor_step(const StepWork& work) {
  const Machine& machine = work.facts.machine;
  Part part;
  part.step.name = "doctor";
  part.step.note =
      machine.device + (machine.driver.empty() ? "" : ", driver " + machine.driver) + ", " + machine.toolkit;
  if (!work.facts.no_gpu.empty()) part.step.note += "; no GPU: " + work.facts.no_gpu;
  if (!work.facts.gpu_busy.empty()) part.step.note += "; the GPU is busy with " + work.facts.gpu_busy;
  part.checks.push_back({"doctor", CheckState::passed, part.step.note, "", false});
  for (const auto& [kernel, why] : work.facts.unavailable)
    part.checks.push_back({"kernels/" + kernel, CheckState::skipped, why, ""});
  return part;
}

Part skipped(const std::string& name, const std::string& why) {
  return {{name, 0, "not run: " + why}, {{name, CheckState::skipped, why, ""}}, {}, {}};
}

Part timed(const std::function<Part()>& act) {
  const auto start = std::chrono::steady_clock::now();
  Part part = act();
  part.step.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return part;
}

}  // namespace attest
