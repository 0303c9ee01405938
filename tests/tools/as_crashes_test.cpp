#include "as_crashes.h"

#include <gtest/gtest.h>

namespace attest::tools {
namespace {

// The program's exit status depends on which it is: 4 for a kernel's failure, 3, 2.
template <class Thrown, class Work>
std::string said(Work work) {
  MeasuredCall call;
  call.kernel = "./mine.so";
  try {
    as_crashes(call, work);
  } catch (const Thrown& thrown) {
    return thrown.what();
  }
  return "";
}

TEST(AsCrashes, WhatAKernelFailsWithNamesTheCall) {
  EXPECT_EQ(said<KernelCrashed>([] { throw std::runtime_error("forward: cudaErrorIllegalAddress"); }),
            "kernel './mine.so' on " + command_line(Case{}) + ": forward: cudaErrorIllegalAddress");
}

TEST(AsCrashes, WhatIsNoKernelsFaultStaysWhatItIs) {
  EXPECT_EQ(said<EnvironmentError>([] { throw EnvironmentError("no GPU"); }), "no GPU");
  EXPECT_EQ(said<InvalidInput>([] { throw InvalidInput("kernel", "'x'", "is none"); }), "kernel: 'x' is none");
}

TEST(AsCrashes, WorkThatEndsIsDone) {
  bool done = false;
  as_crashes({}, [&] { done = true; });
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace attest::tools
