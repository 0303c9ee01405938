// What a worker and its parent say to each other: messages of JSON, each framed by its length.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "attest/fuzz/check.h"
#include "attest/reference/compare.h"

namespace attest::wire {

using Json = nlohmann::json;

// The descriptors that a worker is started with.
inline constexpr int socket_descriptor = 3;
inline constexpr int record_descriptor = 4;

/// A frame: a magic, the payload's length, the payload in CBOR, which holds every double exactly.
std::string frame(const Json& message);

/// Takes frames out of a stream of bytes.
class Unframer {
 public:
  void add(std::string_view bytes) { buffer_.append(bytes); }
  /// The next whole message; none if more bytes must come first. Throws std::runtime_error if these are no frames.
  std::optional<Json> next();

 private:
  std::string buffer_;
  std::size_t at_ = 0;
};

/// Writes it whole; false if nobody reads any more. Raises no SIGPIPE.
bool send(int socket, const Json& message);

Json from_verdict(const Verdict& verdict);
Verdict to_verdict(const Json& json);
Json from_difference(const Difference& difference);
Difference to_difference(const Json& json);
Json from_mask_options(const MaskOptions& options);
MaskOptions to_mask_options(const Json& json);
Json from_mask_report(const MaskReport& report);
MaskReport to_mask_report(const Json& json);
Json from_case(const Case& c);
Case to_case(const Json& json);

}  // namespace attest::wire
