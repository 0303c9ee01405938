// A worker with kernels that break more than values. "broken:WORD[:FROM]" does it where seqlen_k is above FROM (30);
// WORD_when_asked does it in unsupported(), WORD_in_numerics in numerics().
// Everything else is the built-in kernel of that name.
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <thread>

#include "attest/fuzz/kernels.h"
#include "attest/fuzz/worker.h"
#include "attest/problem/error.h"
#include "naive_kernel.h"

namespace attest {
namespace {

using std::chrono::milliseconds;

volatile bool deeper = true;  // no compiler knows that this never ends

int overflow_the_stack(int depth) {
  volatile char wide[4096];
  wide[0] = static_cast<char>(depth);
  return deeper ? overflow_the_stack(depth + 1) + wide[0] : 0;
}

// Writes around a block that it owns, which the allocator notices when attest next asks it for something.
void damage_the_heap() {
  auto* const block = static_cast<char*>(std::malloc(64));
  for (int i = -64; i < 256; ++i) const_cast<volatile char*>(block)[i] = 0x41;
}

void close_everything() {
  for (int descriptor = 3; descriptor < 256; ++descriptor) ::close(descriptor);
}

void write_garbage_everywhere() {
  for (int descriptor = 3; descriptor < 256; ++descriptor)
    if (::write(descriptor, "{\"done\": 1}\n{\"done\": 2}\n", 24) < 0) continue;
}

// A child that outlives the kernel's process and holds its descriptors.
void leave_a_child_and_crash() {
  if (::fork() == 0) {
    std::this_thread::sleep_for(std::chrono::seconds(30));
    ::_exit(0);
  }
  ::raise(SIGKILL);
}

void break_by(std::string_view word) {
  if (word == "segfaults") ::raise(SIGSEGV);
  if (word == "aborts") std::abort();
  if (word == "exits") std::exit(0);
  if (word == "is_killed") ::raise(SIGKILL);
  if (word == "overflows") deeper = overflow_the_stack(0) >= 0;
  if (word == "damages") damage_the_heap();
  if (word == "closes") close_everything();
  if (word == "garbles") write_garbage_everywhere();
  if (word == "leaves_a_child") leave_a_child_and_crash();
  if (word == "throws") throw std::runtime_error("no room");
  if (word == "loses") throw KernelLost("the kernel: cudaErrorIllegalAddress: as a GPU would say");
  while (word == "hangs") std::this_thread::sleep_for(milliseconds(10));
  while (word == "spins") {
    static volatile int turns = 0;
    turns = turns + 1;
  }
}

class Broken : public NaiveKernel {
 public:
  explicit Broken(std::string_view spec)
      : NaiveKernel(spec.starts_with("wrong_and_hangs") ? Fault::lse_base_2 : Fault::none) {
    const std::size_t colon = spec.find(':');
    word_ = spec.substr(0, colon);
    if (colon != std::string_view::npos) {
      const std::string_view from = spec.substr(colon + 1);
      std::from_chars(from.data(), from.data() + from.size(), from_);
    }
    if (word_ == "dies_when_made") std::_Exit(7);
    if (word_ == "refuses") throw InvalidInput("kernel", "'broken:refuses'", "is refused, as it should be");
  }

  std::optional<std::string> unsupported(const Case& c) const override {
    if (word_ == "declines") return "for no reason";
    constexpr std::string_view when_asked = "_when_asked";
    if (c.problem.seqlen_k > from_ && word_.ends_with(when_asked))
      break_by(std::string_view(word_).substr(0, word_.size() - when_asked.size()));
    return std::nullopt;
  }

  Numerics numerics(const Case& c) const override {
    constexpr std::string_view in_numerics = "_in_numerics";
    if (c.problem.seqlen_k > from_ && word_.ends_with(in_numerics))
      break_by(std::string_view(word_).substr(0, word_.size() - in_numerics.size()));
    return NaiveKernel::numerics(c);
  }

  RunReport run(const Case& c, const ForwardArgs& args) override {
    if (word_ == "chatters") {
      std::cout << "{\"done\": 17}" << std::endl;
      std::printf("to stdout\n");
      std::cerr << "to stderr\n";
    }
    if (word_ == "slow") std::this_thread::sleep_for(milliseconds(50));
    if (word_ == "wrong_and_hangs" && c.seed < 2) break_by("hangs");  // as only shrinking makes cases
    if (c.problem.seqlen_k > from_) break_by(word_);
    if (word_ == "hurries") return {};
    return NaiveKernel::run(c, args);
  }

 private:
  std::string word_;
  std::int64_t from_ = 30;
};

std::unique_ptr<Kernel> make(std::string_view name) {
  constexpr std::string_view broken = "broken:";
  if (!name.starts_with(broken)) return make_kernel(name);
  return std::make_unique<Broken>(name.substr(broken.size()));
}

}  // namespace
}  // namespace attest

int main() { return attest::serve_worker(attest::make); }
