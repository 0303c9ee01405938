#include "attest/gpu/python_kernel.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "attest/gpu/kernel_adapter.h"
#include "attest/gpu/plugin.h"
#include "attest/gpu/table_kernel.h"
#include "attest/problem/error.h"
#include "shared_place.h"

namespace attest {
namespace {

// The author's side of the table is the child's: structs go into the shared memory, and a call is a message.
class PythonKernel : public plugin::Kernel {
 public:
  explicit PythonKernel(std::shared_ptr<PythonProcess> process) : process_(std::move(process)) {}

  std::optional<std::string> unsupported(const attest_problem& problem) override {
    share(problem);
    const std::int32_t status = process_->call(PythonCall::supports);
    if (status == ATTEST_UNSUPPORTED) return message();
    check(status);
    return std::nullopt;
  }
  void numerics(const attest_problem& problem, attest_numerics& numerics) override {
    share(problem);
    process_->control().numerics = numerics;
    check(process_->call(PythonCall::numerics));
    numerics = process_->control().numerics;
  }
  void forward(const attest_problem& problem, const attest_forward& args) override {
    share(problem);
    share(args);
    check(process_->call(PythonCall::forward));
  }
  void backward(const attest_problem& problem, const attest_backward& args) override {
    share(problem);
    share(*args.forward);
    process_->control().backward = args;
    check(process_->call(PythonCall::backward));
  }
  std::string plan(const attest_problem& problem) override {
    share(problem);
    check(process_->call(PythonCall::plan));
    return message();
  }

 private:
  std::string message() { return process_->control().message; }

  void check(std::int32_t status) {
    if (status == ATTEST_LOST) throw plugin::Lost(message());
    if (status != ATTEST_OK) throw std::runtime_error(message());
  }

  // Callbacks are this process's and mean nothing there.
  void share(const attest_forward& args) {
    attest_forward& there = process_->control().forward;
    there = args;
    there.hazard = nullptr;
    there.host = nullptr;
  }

  void share(const attest_problem& problem) {
    attest_problem& there = process_->control().problem;
    there = problem;
    std::size_t at = lists_begin;
    for (auto [list, count] : {std::pair{&there.varlen_q, problem.batch},
                               {&there.varlen_k, problem.batch},
                               {&there.seqused_k, problem.batch},
                               {&there.documents, problem.num_documents}}) {
      if (*list == nullptr) continue;
      const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(std::int64_t);
      if (bytes > arena_begin - at) throw std::length_error("problem: its lists are longer than what is shared");
      std::memcpy(process_->memory() + at, *list, bytes);
      *list = static_cast<const std::int64_t*>(process_->in_child(at));
      at += bytes;
    }
  }

  std::shared_ptr<PythonProcess> process_;
};

std::size_t end_of_path(std::string_view spec) {
  const std::size_t at = spec.find(".py:");
  return at == std::string_view::npos ? spec.size() : at + std::strlen(".py");
}

}  // namespace

bool is_python_kernel(std::string_view spec) { return spec.substr(0, end_of_path(spec)).ends_with(".py"); }

std::string python_file(std::string_view spec) { return std::string(spec.substr(0, end_of_path(spec))); }

std::unique_ptr<Kernel> make_python_kernel(std::string_view spec) {
  const std::string file = python_file(spec);
  check_plugin_file(file);
  const std::size_t end = end_of_path(spec);
  const std::string function(end < spec.size() ? spec.substr(end + 1) : std::string_view{});
  const auto process = std::make_shared<PythonProcess>(file, function);
  const std::int32_t status = [&] {
    try {
      return process->call(PythonCall::load);
    } catch (const plugin::Lost& error) {
      throw KernelLost(error.what());
    }
  }();
  Control& control = process->control();
  if (status == ATTEST_INVALID) throw InvalidInput("kernel", fmt::format("'{}'", spec), control.message);
  if (status != ATTEST_OK) throw EnvironmentError(fmt::format("kernel '{}': {}", spec, control.message));
  control.capability.name = control.name;
  control.capability.description = control.description;
  const attest_kernel_api table = plugin::table_of(&control.capability, nullptr);
  return make_table_kernel(table, static_cast<plugin::Kernel*>(new PythonKernel(process)), make_shared_place(process));
}

}  // namespace attest
