#include "wire.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace attest::wire {
namespace {

struct Header {
  std::uint32_t magic;
  std::uint32_t length;
};
constexpr std::uint32_t magic = 0x57747441;  // "AttW"
constexpr std::uint32_t longest = 1u << 30;

/// An array's elements in order, one into each of `members`.
template <class... T>
void read(const Json& array, T&... members) {
  std::size_t at = 0;
  (array.at(at++).get_to(members), ...);
}

}  // namespace

std::string frame(const Json& message) {
  const std::vector<std::uint8_t> payload = Json::to_cbor(message);
  const Header header{magic, static_cast<std::uint32_t>(payload.size())};
  std::string bytes(sizeof header + payload.size(), '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, payload.data(), payload.size());
  return bytes;
}

std::optional<Json> Unframer::next() {
  Header header{};
  if (buffer_.size() - at_ < sizeof header) return std::nullopt;
  std::memcpy(&header, buffer_.data() + at_, sizeof header);
  if (header.magic != magic || header.length > longest) throw std::runtime_error("no frame");
  if (buffer_.size() - at_ - sizeof header < header.length) return std::nullopt;
  const auto* const payload = reinterpret_cast<const std::uint8_t*>(buffer_.data()) + at_ + sizeof header;
  Json message = Json::from_cbor(payload, payload + header.length);
  at_ += sizeof header + header.length;
  constexpr std::size_t worth_moving = 1 << 16;
  if (at_ == buffer_.size() || at_ > worth_moving) {
    buffer_.erase(0, at_);
    at_ = 0;
  }
  return message;
}

bool send(int socket, const Json& message) {
  const std::string bytes = frame(message);
  std::string_view left = bytes;
  while (!left.empty()) {
    const ssize_t written = ::send(socket, left.data(), left.size(), MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

Json from_verdict(const Verdict& v) {
  // Names every member, so that a new one does not compile until it is sent too.
  const auto& [status, rule, channel, element, value, expected, bound, error, numerics, visible_keys, detail] = v;
  return Json::array({static_cast<int>(status), rule, channel, element, value, expected, bound, error, numerics,
                      visible_keys, detail});
}

Verdict to_verdict(const Json& json) {
  Verdict v;
  auto& [status, rule, channel, element, value, expected, bound, error, numerics, visible_keys, detail] = v;
  int number = 0;
  read(json, number, rule, channel, element, value, expected, bound, error, numerics, visible_keys, detail);
  status = static_cast<Status>(number);
  return v;
}

Json from_difference(const Difference& d) {
  const auto& [channel, element, value, expected, bound, error] = d;
  return Json::array({channel, element, value, expected, bound, error});
}

Difference to_difference(const Json& json) {
  Difference d;
  auto& [channel, element, value, expected, bound, error] = d;
  read(json, channel, element, value, expected, bound, error);
  return d;
}

Json from_mask_options(const MaskOptions& options) {
  const auto& [batch, head, refine, checks] = options;
  return Json::array({batch ? Json(*batch) : Json(), head ? Json(*head) : Json(), refine, checks});
}

MaskOptions to_mask_options(const Json& json) {
  MaskOptions options;
  if (!json.at(0).is_null()) options.batch = json.at(0).get<std::int64_t>();
  if (!json.at(1).is_null()) options.head = json.at(1).get<std::int64_t>();
  json.at(2).get_to(options.refine);
  json.at(3).get_to(options.checks);
  return options;
}

Json from_mask_report(const MaskReport& report) {
  const auto& [same, text, json, svg] = report;
  return Json::array({same, text, json, svg});
}

MaskReport to_mask_report(const Json& array) {
  MaskReport report;
  auto& [same, text, json, svg] = report;
  read(array, same, text, json, svg);
  return report;
}

Json from_case(const Case& c) { return to_json(c).dump(); }

Case to_case(const Json& json) { return case_from_json_text(json.get_ref<const std::string&>()); }

}  // namespace attest::wire
