// Nights for tests.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "attest/nightly/history.h"

namespace attest {

/// A test with a folder of its own, which goes with it.
class InItsOwnFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "attest_nights_XXXXXX").string();
    ASSERT_TRUE(::mkdtemp(name.data()));
    folder = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::filesystem::path folder;
};

inline Night night_of(const std::string& day, const std::string& device = "GPU A") {
  Night night;
  night.started = day + "T01:00:00Z";
  night.version = "0.1.0";
  night.machine = {"host", device, "580", "CUDA 13.0"};
  night.campaign = {7, 2, 0, 1};
  night.kernels = {"cpu"};
  return night;
}

/// A night with one check and one figure, finished.
inline std::int64_t add_night(History& history, const Night& night, CheckState state, std::vector<double> values = {},
                              bool begins = false) {
  const std::int64_t id = history.begin(night);
  Part part{{"time", 2, "note"}, {{"time/cpu/x", state, "detail", "attest bench"}}, {}, {}};
  if (!values.empty()) part.series.push_back({"time/cpu/x", "s", std::move(values), begins});
  history.record(id, part);
  history.finish(id, night.started);
  return id;
}

}  // namespace attest
