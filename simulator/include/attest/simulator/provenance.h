// Where and how counters were read, which a file of them says above its rows.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attest {

/// Who reads a GPU's counters.
enum class Profiler { cupti, ncu };
std::string_view to_string(Profiler profiler);
/// The one of that name; none if there is none.
std::optional<Profiler> profiler_called(std::string_view name);

/// What is not known is empty or 0.
struct Provenance {
  std::string gpu;                                   // as CUDA has it: "NVIDIA H200"
  std::int64_t num_sms = 0, compute_capability = 0;  // as a DeviceSpec has them
  std::vector<double> gpc_sides;                     // that chip's own, as a DeviceSpec has them
  std::string driver;                                // "580.159.04"; its CUDA version where the kernel module is silent
  std::string cuda;                                  // of the build
  std::string date;                                  // "2026-11-30"
  std::optional<Profiler> via;
  std::optional<bool> warm;  // caches: as the same call has left L2, else empty
  std::string command;       // that made the file

  bool operator==(const Provenance&) const = default;
};

/// For a person, in one line; empty where nothing is known.
std::string to_text(const Provenance& how);

/// A line "# key: value" each of what is known, as "# num_sms: 132" or "# caches: cold".
std::string to_comments(const Provenance& how);

/// Reads what to_comments() wrote, line by line, wherever in a file they stand.
class ProvenanceReader {
 public:
  explicit ProvenanceReader(std::string_view file) : file_(file) {}
  /// Whether a comment, without its "#", is one of the keys, a colon and its value, with spaces around either. Throws
  /// InvalidInput naming the file, the line and the key for what cannot be its value, for another value than a line
  /// before has, and for what is nearly a key: with capitals, with spaces, hyphens or underscores more or less, with an
  /// s more or less at its end, or with "=" in place of the colon.
  bool read(std::string_view comment, std::size_t line);
  const Provenance& result() const { return how_; }

 private:
  std::string file_;
  Provenance how_;
  std::map<std::string_view, std::pair<std::string, std::size_t>> seen_;  // values and lines by key
};

}  // namespace attest
