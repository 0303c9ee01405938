// GoogleTest's programs that need a GPU, as far as they are here.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <sstream>

#include "steps.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

#ifndef ATTEST_GPU_TESTS  // by tests/CMakeLists.txt
#define ATTEST_GPU_TESTS ""
#endif

// The test that a line of GoogleTest's output is about: "[  FAILED  ] Suite.Case (3 ms)".
std::string test_of(const std::string& line) {
  const std::string rest = line.substr(std::string_view("[  FAILED  ] ").size());
  return rest.substr(0, rest.find_first_of(" ,"));
}

fs::path folder_of(const NightlyOptions& options) {
  std::error_code error;
  return options.tests.empty() ? fs::read_symlink("/proc/self/exe", error).parent_path() : fs::path(options.tests);
}

}  // namespace

void read_tests_output(const std::string& program, const std::string& path, const Ended& ended, Part& part) {
  const std::string name = "tests/" + program;
  std::istringstream lines(ended.out);
  std::string running;
  int passed = 0, failed = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool ok = line.starts_with("[       OK ] "), bad = line.starts_with("[  FAILED  ] ");
    const bool skip = line.starts_with("[  SKIPPED ] ");
    if (line.starts_with("[ RUN      ] ")) running = test_of(line);
    if (!(ok || bad || skip) || running.empty() || test_of(line) != running) continue;  // the summary repeats them
    passed += ok, failed += bad;
    const std::string repro = fmt::format("{} --gtest_filter={}", path, running);
    part.checks.push_back({fmt::format("{}/{}", name, running),
                           bad ? CheckState::wrong : (ok ? CheckState::passed : CheckState::skipped),
                           bad ? "a test of attest's own fails" : "", bad ? repro : ""});
    running.clear();
  }
  const std::string words = fmt::format("{} passed, {} failed", passed, failed);
  const std::string where = running.empty() ? "between tests" : "in " + running;
  if (ended.out_of_time || ended.interrupted)
    part.checks.push_back({name, CheckState::skipped, fmt::format("{} {}; {}", ended.how(), where, words), ""});
  else if (ended.signal != 0 || !running.empty())  // a test that ends the program is none that passed
    part.checks.push_back({name, CheckState::crashed, fmt::format("{} {}; {}", ended.how(), where, words), path});
  else if (ended.exit_status != 0 && failed == 0)
    part.checks.push_back({name, CheckState::wrong, fmt::format("{}: {}", ended.how(), last_words(ended.out)), path});
  else
    part.checks.push_back({name, passed + failed > 0 ? CheckState::passed : CheckState::skipped, words, ""});
  part.step.note += fmt::format("{}{}: {}{}", part.step.note.empty() ? "" : "; ", program, words,
                                ended.out_of_time ? ", out of time" : "");
}

std::vector<std::string> gpu_test_programs() {
  std::vector<std::string> programs;
  std::istringstream names(ATTEST_GPU_TESTS);
  for (std::string name; std::getline(names, name, ',');) programs.push_back(name);
  return programs;
}

Part tests_step(const StepWork& work) {
  if (!work.facts.no_gpu.empty()) return skipped("tests", work.facts.no_gpu);
  Part part;
  part.step.name = "tests";
  const fs::path folder = folder_of(work.options);
  std::vector<std::string> here, missing;
  for (const std::string& program : gpu_test_programs()) {
    std::error_code error;
    (fs::is_regular_file(folder / program, error) ? here : missing).push_back(program);
  }
  if (here.empty())
    part = skipped("tests", fmt::format("no GPU tests in '{}'; --tests says where", folder.string()));
  else if (!missing.empty())
    part.step.note = fmt::format("not there: {}", fmt::join(missing, ", "));
  for (const std::string& program : missing)
    part.checks.push_back(
        {fmt::format("tests/{}", program), CheckState::skipped, fmt::format("not in '{}'", folder.string()), ""});
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < here.size(); ++i) {  // what one leaves of its time is for those after it
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    const double seconds = std::max(0.0, work.seconds - taken.count()) / static_cast<double>(here.size() - i);
    const std::string path = (folder / here[i]).string();
    read_tests_output(here[i], path, run_until_stopped({path}, seconds), part);
  }
  return part;
}

}  // namespace attest
