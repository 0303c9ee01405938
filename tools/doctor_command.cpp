// attest doctor: what this machine and this build have. It finds nothing wrong by itself: a CPU-only machine is a fine
// one. With --kernel: what is right and wrong with that kernel.
#include <dlfcn.h>
#include <fmt/format.h>
#include <omp.h>

#include <CLI/Version.hpp>
#include <Eigen/Core>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attest/fuzz/check.h"
#include "attest/fuzz/inspect.h"
#include "attest/fuzz/kernels.h"
#include "attest/problem/error.h"
#include "attest/problem/find_program.h"
#include "commands.h"
#include "kernel_flag.h"
#include "output.h"

namespace attest::tools {
namespace {

using Json = nlohmann::ordered_json;

struct Gpu {
  std::string name;
  int compute_capability_major = 0, compute_capability_minor = 0;
};

// Asks the driver itself, opened at run time, so that the program needs no CUDA to start.
std::vector<Gpu> find_gpus(std::string& driver) {
  driver = "not found";
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return {};
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(library, "cuInit"));
  const auto version = reinterpret_cast<int (*)(int*)>(dlsym(library, "cuDriverGetVersion"));
  const auto count = reinterpret_cast<int (*)(int*)>(dlsym(library, "cuDeviceGetCount"));
  const auto get = reinterpret_cast<int (*)(int*, int)>(dlsym(library, "cuDeviceGet"));
  const auto name = reinterpret_cast<int (*)(char*, int, int)>(dlsym(library, "cuDeviceGetName"));
  const auto attribute = reinterpret_cast<int (*)(int*, int, int)>(dlsym(library, "cuDeviceGetAttribute"));
  if (!init || !version || !count || !get || !name || !attribute) return {};
  int number = 0;
  if (version(&number) == 0) driver = fmt::format("CUDA {}.{}", number / 1000, number % 1000 / 10);
  if (const int error = init(0); error != 0) {
    driver += fmt::format(", cuInit fails with {}", error);
    return {};
  }
  std::vector<Gpu> gpus;
  int devices = 0;
  if (count(&devices) != 0) return {};
  for (int ordinal = 0; ordinal < devices; ++ordinal) {
    int device = 0;
    char text[256] = "";
    Gpu gpu;
    if (get(&device, ordinal) != 0 || name(text, sizeof text, device) != 0) continue;
    gpu.name = text;
    attribute(&gpu.compute_capability_major, 75, device);  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
    attribute(&gpu.compute_capability_minor, 76, device);  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
    gpus.push_back(gpu);
  }
  return gpus;
}

ExitCode inspect(const Flags& flags, const Results& results) {
  const Inspection inspection = inspect_kernel(worker_program(flags), read_kernel(flags),
                                               flags.seconds("--timeout").value_or(CheckOptions{}.hang_seconds));
  results.finish("doctor", to_json(inspection), to_text(inspection));
  return inspection.exit_code;
}

ExitCode run(const Flags& flags) {
  const Results results(flags);
  if (flags.given("--kernel")) return inspect(flags, results);
  for (const std::string& flag : flags.given_of({"--timeout", "--load-timeout"}))
    throw InvalidInput(field_of(flag), *flags.text(flag), "goes with --kernel");
  std::string driver;
  const std::vector<Gpu> gpus = find_gpus(driver);
  const std::string nvcc = find_program("nvcc");

  Json json;
  json["version"] = ATTEST_VERSION;
  json["compiler"] = "g++ " __VERSION__;
  json["build_type"] = ATTEST_BUILD_TYPE;
  json["built_with_cuda"] = ATTEST_HAVE_CUDA != 0;
  json["openmp_threads"] = omp_get_max_threads();
  json["openmp_processors"] = omp_get_num_procs();
  json["libraries"] = {
      {"eigen", fmt::format("{}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION)},
      {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
      {"nlohmann_json",
       fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)},
      {"cli11", CLI11_VERSION}};
  const CudaState cuda = cuda_state();
  json["cuda_driver"] = driver;
  json["cuda_runtime"] = cuda.runtime;
  json["cuda_unavailable"] = cuda.unavailable;
  json["nvcc"] = nvcc;
  json["gpus"] = Json::array();
  for (const Gpu& gpu : gpus)
    json["gpus"].push_back(
        {{"name", gpu.name},
         {"compute_capability", fmt::format("{}.{}", gpu.compute_capability_major, gpu.compute_capability_minor)}});

  std::string text = fmt::format("attest {}, {} build by {}\n", ATTEST_VERSION, ATTEST_BUILD_TYPE,
                                 json["compiler"].get<std::string>());
  text += fmt::format("OpenMP       {} threads on {} processors\n", omp_get_max_threads(), omp_get_num_procs());
  text += "libraries    ";
  for (const auto& [name, version] : json["libraries"].items())
    text += fmt::format("{} {}  ", name, version.get<std::string>());
  text += fmt::format("\nCUDA driver  {}\nCUDA runtime {}\nnvcc         {}\n", driver,
                      cuda.runtime.empty() ? "none: built without CUDA" : cuda.runtime,
                      nvcc.empty() ? "not in PATH" : nvcc);
  if (gpus.empty()) text += "GPU          none: reference, fuzz, predict and mutants run on the CPU\n";
  for (const Gpu& gpu : gpus)
    text += fmt::format("GPU          {} (sm_{}{})\n", gpu.name, gpu.compute_capability_major,
                        gpu.compute_capability_minor);
  if (!gpus.empty())
    text += fmt::format("CUDA kernels {}\n", cuda.unavailable.empty() ? "can run here" : cuda.unavailable);
  results.finish("doctor", json, text);
  return exit_pass;
}

}  // namespace

Command doctor_command() {
  return {"doctor", "What this machine and this build have, or what is right and wrong with a kernel",
          "  attest doctor --json -\n"
          "  attest doctor --kernel ./libmine.so",
          [](Flags& flags) {
            declare_kernel_flag(flags);
            declare_timeout_flag(flags, CheckOptions{}.hang_seconds);
          },
          run};
}

}  // namespace attest::tools
