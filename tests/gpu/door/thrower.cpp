// A plug-in by the adapter whose every function throws, chosen by its option.
#include <stdexcept>

#include "attest/gpu/kernel_adapter.h"

namespace {

class Thrower : public attest::plugin::Kernel {
 public:
  static attest_capability capability() { return attest::plugin::plain_capability("thrower", 1U << ATTEST_FP32); }

  explicit Thrower(const char* options) : word_(options) {
    if (word_ == "option") throw attest::plugin::InvalidOption("kernel: 'option' is not to be had");
    if (word_ == "environment") throw attest::plugin::NoEnvironment("no such library here");
    if (word_ == "create") throw std::runtime_error("created badly");
  }
  std::optional<std::string> unsupported(const attest_problem& /*problem*/) override {
    if (word_ == "supports") throw std::runtime_error("asked badly");
    return std::nullopt;
  }
  void numerics(const attest_problem& /*problem*/, attest_numerics& /*numerics*/) override {
    if (word_ == "numerics") throw std::runtime_error("rounded badly");
  }
  void forward(const attest_problem& /*problem*/, const attest_forward& /*args*/) override {
    if (word_ == "lost") throw attest::plugin::Lost("the device is gone");
    if (word_ == "seven") throw 7;
    throw std::runtime_error(std::string(9000, 'x'));  // longer than the host has room for
  }

 private:
  std::string word_;
};

}  // namespace

ATTEST_KERNEL(Thrower)
