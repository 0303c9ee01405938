#include "cupti.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "attest/problem/error.h"

namespace attest {
namespace {

void* open_library() {
  std::vector<std::string> names;
  if (const char* const given = std::getenv("ATTEST_CUPTI")) {
    names.emplace_back(given);
  } else {
    const std::string name = fmt::format("libcupti.so.{}", CUDART_VERSION / 1000);
    names = {name};
    const char* const home = std::getenv("CUDA_HOME");
    for (const std::string& root :
         {std::string(home != nullptr ? home : "/usr/local/cuda"),
          fmt::format("/usr/local/cuda-{}", CUDART_VERSION / 1000),
          fmt::format("/usr/local/cuda-{}.{}", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10)})
      for (const char* const folder : {"/lib64/", "/extras/CUPTI/lib64/", "/lib/", "/targets/x86_64-linux/lib/"})
        names.push_back(fmt::format("{}{}{}", root, folder, name));
  }
  for (const std::string& name : names)
    if (void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  throw EnvironmentError(
      fmt::format("CUPTI ({}) cannot be opened; install CUDA {}.{}'s CUPTI, name the file in ATTEST_CUPTI, or take "
                  "--via ncu",
                  names.front(), CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10));
}

Cupti load() {
  void* const library = open_library();
  Cupti functions;
#define ATTEST_LOAD(name)                                                               \
  functions.name = reinterpret_cast<decltype(functions.name)>(::dlsym(library, #name)); \
  if (functions.name == nullptr) throw EnvironmentError("CUPTI is too old: it has no " #name "; take --via ncu");
  ATTEST_CUPTI_FUNCTIONS(ATTEST_LOAD)
#undef ATTEST_LOAD
  return functions;
}

}  // namespace

const Cupti& cupti() {
  static const Cupti functions = load();
  return functions;
}

void cupti_check(CUptiResult result, std::string_view call) {
  if (result == CUPTI_SUCCESS) return;
  if (result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)
    throw EnvironmentError(
        "counters: this user may not read them (ERR_NVGPUCTRPERM); run as root, give a container the capability "
        "SYS_ADMIN, or load the driver with NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d");
  if (result == CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES)
    throw EnvironmentError(
        "counters: this virtual GPU may not read them; its host must allow profiling for the virtual machine");
  const char* text = nullptr;
  cupti().cuptiGetResultString(result, &text);
  throw EnvironmentError(
      fmt::format("counters: {}: {} ({})", call, text != nullptr ? text : "unknown error", static_cast<int>(result)));
}

}  // namespace attest
