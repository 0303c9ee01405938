#include "wire.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace attest {
namespace {

TEST(Wire, FramesComeOutAsTheyWentInHoweverTheyAreCut) {
  const std::vector<wire::Json> messages = {{{"run", 1}}, {{"text", std::string(100'000, 'x')}}, {{"run", 2}}};
  std::string stream;
  for (const wire::Json& message : messages) stream += wire::frame(message);
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{4096}, stream.size()}) {
    wire::Unframer unframer;
    std::vector<wire::Json> got;
    for (std::size_t at = 0; at < stream.size(); at += step) {
      unframer.add(std::string_view(stream).substr(at, step));
      while (auto message = unframer.next()) got.push_back(*message);
    }
    EXPECT_EQ(got, messages) << step;
  }
}

TEST(Wire, GarbageIsRefused) {
  wire::Unframer unframer;
  unframer.add("{\"done\": 1}\n");
  EXPECT_THROW(unframer.next(), std::runtime_error);
}

TEST(Wire, VerdictsArriveExactly) {
  Verdict v;
  v.status = Status::hazard;
  v.rule = "rule";
  v.channel = "lse";
  v.element = {1, 2, 3, 4};
  v.value = 0.1;
  v.expected = -std::numeric_limits<double>::infinity();
  v.bound = std::numeric_limits<double>::denorm_min();
  v.error_over_budget = std::numeric_limits<double>::infinity();
  v.numerics = "n";
  v.visible_keys = "0-3";
  v.detail = "a \xC3\xA9";
  wire::Unframer unframer;
  unframer.add(wire::frame(wire::from_verdict(v)));
  const Verdict got = wire::to_verdict(*unframer.next());
  EXPECT_EQ(to_json(got), to_json(v));
  EXPECT_EQ(got.value, v.value);
  EXPECT_EQ(got.bound, v.bound);
  v.value = std::nan("");
  EXPECT_TRUE(std::isnan(wire::to_verdict(wire::from_verdict(v)).value));
}

TEST(Wire, AnythingThatAKernelThrowsCanBeSent) {
  Verdict v;
  v.detail = "no UTF-8: \xFF\xFE and a \0 within";
  wire::Unframer unframer;
  unframer.add(wire::frame(wire::from_verdict(v)));
  EXPECT_EQ(wire::to_verdict(*unframer.next()).detail, v.detail);
}

}  // namespace
}  // namespace attest
