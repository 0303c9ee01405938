// The child that runs attest.py.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

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

  Control& control() { return *reinterpret_cast<Control*>(memory_); }
  std::byte* memory() { return memory_; }
  /// Where the child has the byte at `offset`.
  void* in_child(std::size_t offset) const { return reinterpret_cast<void*>(child_base_ + offset); }

 private:
  std::string end();

  pid_t pid_ = -1;
  int socket_ = -1;
  std::byte* memory_ = nullptr;
  std::uintptr_t child_base_ = 0;
};

}  // namespace attest
