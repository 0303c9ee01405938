// The child that runs attest.py.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "attest/problem/child.h"
#include "control.h"

namespace attest {

class PythonProcess {
 public:
  /// Throws EnvironmentError where it cannot be started. `function`: empty for a file's only one.
  PythonProcess(const std::string& file, const std::string& function);
  ~PythonProcess();
  PythonProcess(const PythonProcess&) = delete;
  PythonProcess& operator=(const PythonProcess&) = delete;

  /// An attest_status; control().message has what was said. Waits as long as it takes. Throws plugin::Lost, with how it
  /// ended, if the child is gone.
  std::int32_t call(PythonCall what);

  Control& control() { return *reinterpret_cast<Control*>(memory_.data()); }
  std::byte* memory() { return memory_.data(); }
  /// Where the child has the byte at `offset`.
  void* in_child(std::size_t offset) const { return reinterpret_cast<void*>(child_base_ + offset); }

 private:
  std::string end();

  SharedMemory memory_;
  Descriptor socket_;
  std::unique_ptr<Child> child_;
  std::uintptr_t child_base_ = 0;
};

}  // namespace attest
