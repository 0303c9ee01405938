// The flags of one command. CLI11 splits the command line and prints the help; what a value means is read here, because
// CLI11's own conversions take trailing text and let a later flag override an earlier one.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace attest::tools {

class Flags {
 public:
  /// `app` must outlive this.
  explicit Flags(CLI::App& app) : app_(app) {}

  // Declaring. `name` with its dashes, as in "--seqlen-q".
  void group(const std::string& title) { group_ = title; }  // the heading in --help of what is declared next
  void value(const std::string& name, const std::string& placeholder, const std::string& help);
  /// --name or --name=VALUE; text() is empty for the former.
  void optional_value(const std::string& name, const std::string& placeholder, const std::string& help);
  void toggle(const std::string& name, const std::string& help);
  /// --name VALUE, as often as wanted.
  void values(const std::string& name, const std::string& placeholder, const std::string& help);
  /// Words that belong to no flag, one at least and at most `most`.
  void positional(const std::string& placeholder, const std::string& help, int most);

  /// Refuses, with InvalidInput, what was given twice and what was never declared.
  void check() const;

  // Reading, after the command line was parsed. All throw InvalidInput naming the flag without its dashes.
  bool given(const std::string& name) const;
  std::optional<std::string> text(const std::string& name) const;
  std::vector<std::string> texts(const std::string& name) const;  // of values(), in the order they were given
  std::vector<std::string> positional() const;
  std::optional<std::int64_t> integer(const std::string& name,
                                      std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                                      std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;
  std::optional<std::uint64_t> unsigned_integer(const std::string& name) const;
  std::optional<double> number(const std::string& name) const;
  std::optional<double> seconds(const std::string& name) const;

  /// Of `names`, those that this command has and that were given, in the order of `names`.
  std::vector<std::string> given_of(const std::vector<std::string>& names) const;

 private:
  CLI::App& app_;
  std::string group_ = "Options";
  std::set<std::string> toggles_, repeatable_;
  std::string positional_;  // placeholder; empty: the command takes none
};

/// "--seqlen-q" -> "seqlen_q", the field that the flag sets.
std::string field_of(const std::string& flag);

}  // namespace attest::tools
