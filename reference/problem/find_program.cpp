#include "attest/problem/find_program.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace attest {

std::string find_program(const std::string& name, const std::vector<std::string>& folders) {
  const auto runs = [](const std::string& path) {
    struct stat found {};
    return ::access(path.c_str(), X_OK) == 0 && ::stat(path.c_str(), &found) == 0 && !S_ISDIR(found.st_mode);
  };
  if (name.find('/') != std::string::npos) return runs(name) ? name : "";
  const char* const variable = std::getenv("PATH");
  std::string_view rest = variable == nullptr ? "" : variable;
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    std::string path = fmt::format("{}/{}", rest.substr(0, colon), name);
    if (runs(path)) return path;
    rest = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
  }
  for (const std::string& folder : folders)
    if (std::string path = fmt::format("{}/{}", folder, name); runs(path)) return path;
  return "";
}

}  // namespace attest
