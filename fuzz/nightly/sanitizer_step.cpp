// tools/sanitize.sh, which travels in the program.
#include <fmt/format.h>
#include <unistd.h>

#include <span>
#include <sstream>

#include "attest/problem/embedded_file.h"
#include "attest/problem/find_program.h"
#include "steps.h"

namespace attest {

std::span<const EmbeddedFile> embedded_sanitize_script();  // made by attest_embed()

namespace {

constexpr std::string_view tools[] = {"memcheck", "racecheck", "initcheck", "synccheck"};

std::string word_after(const std::string& line, std::string_view flag) {
  const std::size_t at = line.find(flag);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + flag.size();
  return line.substr(begin, line.find(' ', begin) - begin);
}

}  // namespace

void read_sanitizer_output(const std::vector<std::string>& kernels, const Ended& ended, Part& part) {
  const std::size_t summary = ended.out.rfind("compute-sanitizer:");
  part.step.note = last_words(ended.out.substr(summary == std::string::npos ? 0 : summary));
  // 1: an error, or no case that came out clean; anything else, a signal too, is the script's own end
  if (ended.exit_status != 0 && ended.exit_status != 1) {
    part.checks.push_back({"sanitizer", CheckState::skipped, fmt::format("{}: {}", ended.how(), part.step.note), ""});
    return;
  }
  std::istringstream lines(ended.out);
  int failed = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("left ")) {  // "left TOOL KERNEL CASE"
      std::istringstream fields(line);
      std::string left, tool, kernel;
      fields >> left >> tool >> kernel;
      part.checks.push_back({fmt::format("sanitizer/{}/{}", kernel, tool), CheckState::skipped, "out of time", ""});
    }
    const std::size_t begin = line.find("ATTEST_DEVICE_MEMORY");
    if (!line.starts_with("FAILED ") || begin == std::string::npos) continue;
    ++failed;
    const std::string repro = line.substr(begin);
    part.checks.push_back({fmt::format("sanitizer/{}/{}", word_after(line, "--kernel "), word_after(line, "--tool ")),
                           CheckState::wrong, "compute-sanitizer reports an error", repro});
  }
  if (ended.exit_status != 0 && failed == 0) {
    part.checks.push_back({"sanitizer", CheckState::skipped, part.step.note, ""});
    return;
  }
  for (const std::string& kernel : kernels)  // a more severe one of the same name stays
    for (const std::string_view tool : tools)
      part.checks.push_back({fmt::format("sanitizer/{}/{}", kernel, tool), CheckState::passed, "", ""});
}

Part sanitizer_step(const StepWork& work) {
  if (!work.facts.no_gpu.empty()) return skipped("sanitizer", work.facts.no_gpu);
  if (find_program("compute-sanitizer").empty()) return skipped("sanitizer", "no compute-sanitizer in PATH");
  const std::vector<std::string> kernels = gpu_kernels(work.night.kernels);
  if (kernels.empty()) return skipped("sanitizer", "no kernel of tonight's runs on the GPU");

  char path[4096] = "";
  if (::readlink("/proc/self/exe", path, sizeof path - 1) <= 0) return skipped("sanitizer", "no /proc/self/exe");
  std::vector<std::string> words = {"bash", "-c", std::string(embedded_sanitize_script().front().text), "sanitize",
                                    path};
  words.insert(words.end(), kernels.begin(), kernels.end());
  const Ended ended =
      run_until_stopped(words, work.seconds, {{"ATTEST_SANITIZE_SECONDS", fmt::format("{:.0f}", 0.8 * work.seconds)}});
  Part part;
  part.step.name = "sanitizer";
  read_sanitizer_output(kernels, ended, part);
  return part;
}

}  // namespace attest
