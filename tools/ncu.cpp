#include "ncu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "attest/fuzz/worker.h"
#include "attest/problem/error.h"
#include "attest/problem/exit_code.h"
#include "attest/problem/find_program.h"
#include "attest/problem/process.h"
#include "measuring.h"
#include "parse.h"
#include "paths.h"

namespace attest::tools {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// A folder for the requests and the log, gone with its owner.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "attest-measure-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw EnvironmentError(fmt::format("'{}': cannot be made: {}", name, std::strerror(errno)));
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string this_program() {
  const fs::path path = full_path("/proc/self/exe");
  if (path.empty()) throw EnvironmentError("this program's file is not there any more");
  return path.string();
}

}  // namespace

std::vector<std::string> ncu_command(const std::string& ncu, const std::string& log, bool warm,
                                     const std::vector<std::string>& worker) {
  std::vector<std::string> words = {ncu,
                                    "--profile-from-start",
                                    "off",
                                    "--cache-control",
                                    warm ? "none" : "all",
                                    "--clock-control",
                                    "none",
                                    "--metrics",
                                    fmt::format("{}", fmt::join(ncu_counters(), ",")),
                                    "--csv",
                                    "--page",
                                    "raw",
                                    "--print-units",
                                    "base",
                                    "--log-file",
                                    log};
  words.insert(words.end(), worker.begin(), worker.end());
  return words;
}

void deal_out(std::vector<MeasuredLaunch> launches, std::string_view mark, std::vector<MeasuredCall>& calls) {
  std::size_t marks = 0;
  for (MeasuredCall& call : calls) call.launches.clear();
  for (MeasuredLaunch& launch : launches) {
    if (launch.function.find(mark) != std::string::npos)
      ++marks;
    else if (marks == 0 || marks > calls.size())
      throw EnvironmentError("ncu: its log has launches before the first call or after the last");
    else
      calls[marks - 1].launches.push_back(std::move(launch));
  }
  if (marks != calls.size())
    throw EnvironmentError(fmt::format("ncu: {} of {} calls are in its log", marks, calls.size()));
}

void throw_ncu_failed(int status, std::string_view said) {
  if (said.find("ERR_NVGPUCTRPERM") != std::string_view::npos)
    throw EnvironmentError(
        "ncu: this user may not read the GPU's counters (ERR_NVGPUCTRPERM); run as root, give a container the "
        "capability SYS_ADMIN, or load the driver with NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d");
  std::string of_ncu, of_worker;
  int worker_status = 0;
  std::istringstream lines{std::string(said)};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(measure_worker_says)) of_worker = line.substr(std::string_view(measure_worker_says).size());
    if (!line.starts_with("==ERROR==")) continue;
    of_ncu = line;
    constexpr std::string_view returned = "returned an error code (";
    if (const auto at = line.find(returned); at != std::string::npos)
      worker_status = std::atoi(line.c_str() + at + returned.size());
  }
  if (worker_status == 0 && !of_worker.empty()) worker_status = status;
  const std::string how = fmt::format("ncu ended with status {}{}{}", status, of_ncu.empty() ? "" : ": ", of_ncu);
  if (worker_status != 0 && worker_status != exit_environment)
    throw KernelCrashed(of_worker.empty() ? "the kernel brought the worker of ncu down: " + how : of_worker);
  throw EnvironmentError(of_worker.empty() ? how : of_worker);
}

nlohmann::ordered_json requests_to_json(const std::vector<MeasuredCall>& calls) {
  Json requests = Json::array();
  for (const MeasuredCall& call : calls) requests.push_back({{"kernel", call.kernel}, {"case", to_json(call.c)}});
  return requests;
}

std::vector<MeasuredCall> requests_from_json_text(std::string_view text) {
  std::vector<MeasuredCall> calls;
  for (const Json& request : Json::parse(text)) {
    MeasuredCall& call = calls.emplace_back();
    call.kernel = request.at("kernel").get<std::string>();
    call.c = case_from_json(request.at("case"));
  }
  return calls;
}

void measure_with_ncu(std::vector<MeasuredCall>& calls, bool warm, bool progress) {
  expect_gpu(without_gpu);
  const TemporaryFolder folder;
  const std::string requests = folder.file("calls.json"), log = folder.file("ncu.csv");
  std::ofstream(requests) << requests_to_json(calls).dump();
  const char* const given = std::getenv("ATTEST_NCU");
  const std::string ncu = find_program(given != nullptr ? given : "ncu", {"/usr/local/cuda/bin"});
  if (ncu.empty())
    throw EnvironmentError(
        fmt::format("{} cannot be run; install Nsight Compute, name it in ATTEST_NCU, or take --via cupti",
                    in_quotes(given != nullptr ? given : "ncu")));
  if (progress) fmt::print(stderr, "attest: ncu makes {} calls\n", calls.size());
  const Ended ended = run_process(ncu_command(ncu, log, warm, {this_program(), measure_worker_argument, requests}));
  const std::string text = text_of(log);
  const int status = ended.signal != 0 ? 128 + ended.signal : ended.exit_status;
  if (status != 0 || text.find("==ERROR==") != std::string::npos)
    throw_ncu_failed(status, ended.out + text);  // what it says before it has a log as well
  deal_out(launches_from_ncu(text), "attest_measure_mark", calls);
}

}  // namespace attest::tools
