// SASS as `cuobjdump -sass` or `nvdisasm` lists it: functions and their instructions.
#pragma once
#include <cstddef>
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
  static constexpr std::size_t usual_most_bytes = std::size_t{1} << 30;
  /// Keeps functions whose demangled name contains every one of `parts` and, where it is not empty, whose architecture
  /// is `arch`, in about `most_bytes` of memory.
  explicit SassReader(std::vector<std::string> parts = {}, std::string arch = "",
                      std::size_t most_bytes = usual_most_bytes);
  /// Throws std::length_error where that takes more.
  void line(std::string_view text);

  /// What was kept, in the order of the listing.
  std::vector<SassFunction> take() { return std::move(functions_); }
  /// Demangled names, each once, and architectures of all that the listing has, kept or not.
  const std::vector<std::string>& names() const { return names_; }
  const std::vector<std::string>& archs() const { return archs_; }
  /// The first function that the listing ends within, or leaves for another one; empty: none. It can be told of what
  /// cuobjdump printed, which has ".headerflags" below each name and a line of dots behind each function.
  std::string cut_off() const { return !has_flags_ ? "" : cut_off_.empty() ? open_ : cut_off_; }

 private:
  bool wanted(const std::string& name) const;
  void begin(std::string name);
  void take_memory(std::size_t bytes);
  std::vector<std::string> parts_, names_, archs_;
  std::unordered_set<std::string> seen_;  // of names and architectures
  std::string wanted_arch_, arch_;
  std::vector<SassFunction> functions_;
  bool keeping_ = false, has_flags_ = false;
  std::string open_, cut_off_;  // the function whose lines these are; the first that another one follows without dots
  std::size_t bytes_ = 0, most_bytes_;
};

}  // namespace attest
