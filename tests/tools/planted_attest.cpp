// attest with a kernel that was broken last night: ATTEST_PLANT=sm80:bug makes every causal mask disappear from sm80,
// =sm80:slow makes it compute everything twice, =sm80:bug,slow both, =sm80:throw lets no call
// return, =sm80:steady,... tells times of a clock that no other program disturbs, =./mine.so:on_gpu says that what runs
// on the host runs on a GPU. Everything else is the program's.
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "attest/fuzz/kernels.h"
#include "attest/fuzz/worker.h"
#include "commands.h"

namespace {

using namespace attest;

class PlantedKernel : public Kernel {
 public:
  PlantedKernel(std::unique_ptr<Kernel> kernel, std::string_view plant)
      : kernel_(std::move(kernel)),
        bug_(plant.find("bug") != plant.npos),
        slow_(plant.find("slow") != plant.npos),
        throw_(plant.find("throw") != plant.npos),
        steady_(plant.find("steady") != plant.npos),
        capability_(kernel_->capability()) {
    if (plant.find("on_gpu") != plant.npos) capability_.device = "cuda";
  }

  const Capability& capability() const override { return capability_; }
  Numerics numerics(const Case& c) const override { return kernel_->numerics(c); }
  std::optional<std::string> unsupported(const Case& c) const override { return kernel_->unsupported(c); }
  RunReport run(const Case& c, const ForwardArgs& args) override {
    if (throw_) throw std::runtime_error("planted");
    if (slow_) kernel_->run(planted(c), args);
    return kernel_->run(planted(c), args);
  }
  RunReport run_backward(const Case& c, const BackwardArgs& args) override { return kernel_->run_backward(c, args); }
  // Twice as many launches, each measurement the sum of two.
  std::vector<double> device_seconds(const Case& c, const ForwardArgs& args, int repeats) override {
    if (steady_) {
      std::vector<double> told;
      for (int i = 0; i < repeats; ++i) told.push_back((slow_ ? 2e-4 : 1e-4) + 1e-7 * i);
      return told;
    }
    std::vector<double> seconds = kernel_->device_seconds(planted(c), args, repeats);
    if (!slow_) return seconds;
    const std::vector<double> again = kernel_->device_seconds(planted(c), args, repeats);
    for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] += again[i];
    return seconds;
  }

 private:
  Case planted(Case c) const {
    if (bug_) c.problem.causal = Causal::none;
    return c;
  }

  std::unique_ptr<Kernel> kernel_;
  bool bug_, slow_, throw_, steady_;
  Capability capability_;
};

std::unique_ptr<Kernel> make_planted(std::string_view spec) {
  const char* const variable = std::getenv("ATTEST_PLANT");
  const std::string_view plant = variable ? variable : "";
  const std::size_t colon = plant.rfind(':');
  std::unique_ptr<Kernel> kernel = make_kernel(spec);
  if (plant.substr(0, colon) != spec || colon == plant.npos) return kernel;
  return std::make_unique<PlantedKernel>(std::move(kernel), plant.substr(colon + 1));
}

}  // namespace

int main(int argc, char** argv) {
  using namespace attest::tools;
  if (argc == 2 && WorkerProgram{}.arguments.front() == argv[1]) return serve_worker(make_planted);
  const Command commands[] = {check_command(),   fuzz_command(),   predict_command(), measure_command(),
                              kernels_command(), doctor_command(), nightly_command(), bench_command(),
                              merge_command(),   report_command()};
  return run_program(commands, argc, argv);
}
