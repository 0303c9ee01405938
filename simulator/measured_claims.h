// What the comments of a file of counters say of how they were read.
#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace attest {

/// Words of a comment, and those that no other one may have beside them.
struct MeasuredClaim {
  std::string_view words, gainsaid_by;
};
inline constexpr MeasuredClaim measured_claims[] = {{"cold caches", "warm caches"},
                                                    {"warm caches", "cold caches"},
                                                    {"through cupti", "through ncu"},
                                                    {"through ncu", "through cupti"}};

class MeasuredClaims {
 public:
  /// A claim of `comment` that it or one before it gainsays; none where all agree.
  const MeasuredClaim* gainsaid(std::string_view comment, std::size_t line) {
    for (const MeasuredClaim& claim : measured_claims) {
      if (comment.find(claim.words) == std::string_view::npos) continue;
      if (lines_.contains(claim.gainsaid_by)) return &claim;
      lines_.emplace(claim.words, line);
    }
    return nullptr;
  }
  std::size_t line_of(std::string_view words) const { return lines_.at(words); }
  /// The profiler, where one is named.
  std::string via() const {
    if (lines_.contains("through cupti")) return "cupti";
    return lines_.contains("through ncu") ? "ncu" : "";
  }
  std::optional<bool> warm() const {
    if (lines_.contains("warm caches")) return true;
    return lines_.contains("cold caches") ? std::optional(false) : std::nullopt;
  }

 private:
  std::map<std::string_view, std::size_t> lines_;  // by a claim's words
};

}  // namespace attest
