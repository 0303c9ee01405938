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
  /// is `arch`. `most_bytes` are counted of them, and of what contents_of() and a report make of each function and each
  /// branch back; the memory that this takes is up to about twice as much.
  explicit SassReader(std::vector<std::string> parts = {}, std::string arch = "",
                      std::size_t most_bytes = usual_most_bytes);
  /// Throws std::length_error where that takes more.
  void line(std::string_view text);

  /// What was kept, in the order of the listing.
  std::vector<SassFunction> take() { return std::move(functions_); }
  /// Demangled names, each once, of all functions that the listing has, kept or not, and their architectures.
  const std::vector<std::string>& names() const { return names_; }
  const std::vector<std::string>& archs() const { return archs_; }
  /// The first function that the listing leaves for another one, or ends within, without a line of dots; empty: none.
  const std::string& without_dots() const { return cut_off_.empty() ? open_ : cut_off_; }
  /// Whether cuobjdump printed it, as far as it shows: ".headerflags" below a name. Then dots are behind each function.
  bool has_flags() const { return has_flags_; }

 private:
  bool wanted(const std::string& name) const;
  void begin(std::string name);
  void take_memory(std::size_t bytes);
  void list_once(std::vector<std::string>& list, const std::string& name, const std::string& mark);
  std::vector<std::string> parts_, names_, archs_;
  std::unordered_set<std::string> seen_;  // of names and architectures
  std::string wanted_arch_, arch_;
  std::vector<SassFunction> functions_;
  bool keeping_ = false, has_flags_ = false;
  std::string open_, cut_off_;  // the function whose lines these are; the first that another one follows without dots
  std::size_t bytes_ = 0, bytes_of_names_ = 0, most_bytes_;
};

}  // namespace attest
