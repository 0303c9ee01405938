// attest bench: what calls of a kernel take.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apart.h"
#include "attest/fuzz/kernels.h"
#include "attest/fuzz/worker.h"
#include "attest/gpu/forward_buffers.h"
#include "attest/nightly/bench.h"
#include "case_flags.h"
#include "commands.h"
#include "kernel_flag.h"
#include "output.h"

namespace attest::tools {
namespace {

BenchResult bench(Kernel& kernel, const BenchOptions& options) {
  try {
    return run_bench(kernel, options);
  } catch (const KernelThrew& error) {
    throw KernelCrashed(fmt::format("kernel '{}' threw: {}", options.kernel, error.what()));
  }
}

}  // namespace

Command bench_command(const KernelByName& make_kernel) {
  return {"bench", "What calls of a kernel take, by the device's clock",
          "  attest bench --kernel sm80\n"
          "  attest bench --kernel sm80 --nheads 16 --seqlen-q 4096 --seqlen-k 4096 --headdim 128 --dtype bf16\n"
          "Without a CASE: the panel that attest nightly times.",
          [](Flags& flags) {
            flags.group("Bench");
            declare_kernel_flag(flags);
            flags.value("--repeats", "N", "Measurements of each call (9)");
            declare_case_flags(flags);
          },
          [make_kernel](const Flags& flags) {
            const Results results(flags);
            BenchOptions options;
            options.kernel = read_kernel(flags);
            if (!case_flags_given(flags).empty()) options.cases.push_back(read_case(flags));
            if (const auto repeats = flags.integer("--repeats", 1, 1000)) options.repeats = static_cast<int>(*repeats);
            return apart(options.kernel, [&] {
              const std::unique_ptr<Kernel> kernel = make_kernel(options.kernel);
              const BenchResult result = bench(*kernel, options);
              results.finish("bench", to_json(options, result), to_text(options, result));
              return exit_pass;
            });
          }};
}

}  // namespace attest::tools
