#include "channel.h"

#include <fmt/format.h>

#include "attest/reference/attends.h"

namespace attest {
namespace {

// The numbers below `count` for which `in` holds, as ranges.
template <class Predicate>
std::string ranges(std::int64_t count, const Predicate& in) {
  std::string text;
  for (std::int64_t n = 0; n < count; ++n) {
    if (!in(n)) continue;
    std::int64_t last = n;
    while (last + 1 < count && in(last + 1)) ++last;
    if (!text.empty()) text += ", ";
    text += last == n ? fmt::format("{}", n) : fmt::format("{}-{}", n, last);
    n = last;
  }
  return text.empty() ? "none" : text;
}

}  // namespace

std::vector<Channel> channels_of(const Problem& p, const Truth& truth, const Outputs& outputs) {
  using Of = Channel::Of;
  const Dtype dtype = output_dtype(p.dtype);
  std::vector<Channel> channels = {
      {"o", Of::query_rows, dtype, &truth.forward.o, &truth.o_bound, &outputs.o, outputs.unwritten_o}};
  if (outputs.lse)
    channels.push_back(
        {"lse", Of::lse, Dtype::fp32, &truth.forward.lse, &truth.lse_bound, &*outputs.lse, outputs.unwritten_lse});
  if (!outputs.gradients) return channels;
  const Gradients &want = truth.gradients, &bound = truth.gradient_bounds, &got = *outputs.gradients;
  const auto& unwritten = outputs.unwritten_gradients;
  channels.push_back({"dq", Of::query_rows, dtype, &want.dq, &bound.dq, &got.dq, unwritten[0]});
  channels.push_back({"dk", Of::key_rows, dtype, &want.dk, &bound.dk, &got.dk, unwritten[1]});
  channels.push_back({"dv", Of::key_rows, dtype, &want.dv, &bound.dv, &got.dv, unwritten[2]});
  if (p.sink)
    channels.push_back({"dsink", Of::heads, Dtype::fp32, &want.dsink, &bound.dsink, &got.dsink, unwritten[3]});
  if (p.bias != Bias::none)
    channels.push_back({"dbias", Of::pairs, Dtype::fp32, &want.dbias, &bound.dbias, &got.dbias, unwritten[4]});
  return channels;
}

Element position(const Tensor& t, std::int64_t n) {
  const auto& e = t.extents;
  return {n / e[3] / e[2] / e[1], n / e[3] / e[2] % e[1], n / e[3] % e[2], n % e[3]};
}

bool inside(const Problem& p, const Channel& channel, const Element& e) {
  switch (channel.of) {
    case Channel::Of::query_rows:
      return e[1] < queries_of(p, e[0]);
    case Channel::Of::lse:
      return e[2] < queries_of(p, e[0]);
    case Channel::Of::key_rows:
      return e[1] < keys_of(p, e[0]);
    case Channel::Of::heads:
      return true;
    case Channel::Of::pairs: {
      const bool shared = channel.truth->extents[0] == 1;
      for (std::int64_t b = shared ? 0 : e[0]; b < (shared ? p.batch : e[0] + 1); ++b)
        if (e[2] < queries_of(p, b) && e[3] < keys_of(p, b)) return true;
      return false;
    }
  }
  return false;
}

std::string element_name(const Channel& channel, const Element& e) {
  switch (channel.of) {
    case Channel::Of::query_rows:
      return fmt::format("{}[b={}, i={}, h={}, d={}]", channel.name, e[0], e[1], e[2], e[3]);
    case Channel::Of::lse:
      return fmt::format("{}[b={}, h={}, i={}]", channel.name, e[0], e[1], e[2]);
    case Channel::Of::key_rows:
      return fmt::format("{}[b={}, j={}, h={}, d={}]", channel.name, e[0], e[1], e[2], e[3]);
    case Channel::Of::heads:
      return fmt::format("{}[h={}]", channel.name, e[1]);
    case Channel::Of::pairs:
      return fmt::format("{}[b={}, h={}, i={}, j={}]", channel.name, e[0], e[1], e[2], e[3]);
  }
  return "?";
}

std::string visible_of(const Problem& p, const Channel& channel, const Element& e) {
  const auto keys_of_query = [&](std::int64_t i) {
    return ranges(p.seqlen_k, [&](std::int64_t j) { return attends(p, e[0], i, j); });
  };
  switch (channel.of) {
    case Channel::Of::query_rows:
      return keys_of_query(e[1]);
    case Channel::Of::lse:
    case Channel::Of::pairs:
      return keys_of_query(e[2]);
    case Channel::Of::key_rows:
      return ranges(queries_of(p, e[0]), [&](std::int64_t i) { return attends(p, e[0], i, e[1]); });
    case Channel::Of::heads:
      break;
  }
  return "";
}

}  // namespace attest
