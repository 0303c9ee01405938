#include "attest/gpu/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "attest/gpu/table_kernel.h"
#include "attest/problem/error.h"

namespace attest {
namespace {

constexpr std::string_view suffix = ".so";

// Where the path ends and ":OPTIONS" may begin.
std::size_t end_of_path(std::string_view spec) {
  if (const std::size_t at = spec.find(".so:"); at != std::string_view::npos) return at + suffix.size();
  return spec.size();
}

}  // namespace

bool is_plugin(std::string_view spec) {
  const std::string_view path = spec.substr(0, end_of_path(spec));
  return path.find('/') != std::string_view::npos || path.ends_with(suffix);
}

PluginSpec plugin_spec(std::string_view spec) {
  const std::size_t end = end_of_path(spec);
  return {std::string(spec.substr(0, end)), std::string(end < spec.size() ? spec.substr(end + 1) : std::string_view{})};
}

void check_plugin_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) throw InvalidInput("kernel", fmt::format("'{}'", path), "is no file");
  if (!std::filesystem::is_regular_file(status))
    throw InvalidInput("kernel", fmt::format("'{}'", path), "is no regular file");
}

const attest_kernel_api* load_plugin(const std::string& path) {
  check_plugin_file(path);
  // Absolute, so that no search path is looked at. RTLD_NOW: what is missing shows here and not in the first call.
  void* const library = ::dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw EnvironmentError(fmt::format("kernel '{}' cannot be loaded: {}", path, ::dlerror()));
  void* const symbol = ::dlsym(library, ATTEST_KERNEL_SYMBOL);
  if (symbol == nullptr)
    throw EnvironmentError(fmt::format("kernel '{}' exports no function " ATTEST_KERNEL_SYMBOL, path));
  const attest_kernel_api* const api = reinterpret_cast<decltype(&attest_kernel)>(symbol)(ATTEST_KERNEL_ABI);
  try {
    (void)read_api(api);
  } catch (const EnvironmentError& error) {
    throw EnvironmentError(fmt::format("kernel '{}': {}", path, error.what()));
  }
  return api;
}

}  // namespace attest
