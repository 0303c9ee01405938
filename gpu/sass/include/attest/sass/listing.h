// SASS as `cuobjdump -sass` or `nvdisasm` lists it: functions and their instructions.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace attest {

struct SassInstruction {
  std::int64_t address = 0;            // bytes from the function's start
  std::string opcode;                  // with its modifiers, without predicate and operands: "LDGSTS.E.BYPASS.128"
  std::optional<std::int64_t> target;  // of a branch
};

struct SassFunction {
  std::string name;  // demangled
  std::string arch;  // "sm_90"
  std::vector<SassInstruction> code;
};

/// Reads a listing line by line, so that one of hundreds of megabytes takes the memory of what is wanted of it.
class SassReader {
 public:
  /// Keeps functions whose demangled name contains every one of `parts` and, where it is not empty, whose architecture
  /// is `arch`.
  explicit SassReader(std::vector<std::string> parts = {}, std::string arch = "");
  void line(std::string_view text);

  /// What was kept, in the order of the listing.
  std::vector<SassFunction> take() { return std::move(functions_); }
  /// Demangled names, each once, and architectures of all that the listing has, kept or not.
  const std::vector<std::string>& names() const { return names_; }
  const std::vector<std::string>& archs() const { return archs_; }

 private:
  bool wanted(const std::string& name) const;
  std::vector<std::string> parts_, names_, archs_;
  std::unordered_set<std::string> seen_;  // of names and architectures
  std::string wanted_arch_, arch_;
  std::vector<SassFunction> functions_;
  bool keeping_ = false;
};

}  // namespace attest
