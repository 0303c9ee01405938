// CTAs that keep in step: those of an SM, and SMs, whose key tiles take as long as copies that a function makes granule
// by granule.
#pragma once
#include "attest/plan/kernel_plan.h"
#include "attest/simulator/device.h"
#include "noise.h"
#include "traffic.h"

namespace attest {

/// Whether the CTAs of an SM keep in step: where they copy by a function whose granules are not waited for one by one.
/// By clocks the older of two then takes as long as the younger, to 0.1%, where CTAs of different SMs are 0.8 to 1.7%
/// apart (simulator/measured/cta_leads.csv); warps that execute a function's jumps together share what is fetched.
bool keeps_in_step(const KernelPlan& plan, const DeviceSpec& device, bool pages);

/// How such CTAs go, in parts of a key tile's time. Two of an SM are `lag` apart, whatever those before them were.
/// Each, or the younger alone where the `older_does_not_vary`, is off by `apart_at_first` in its first key tile and by
/// `apart` later, of which after `spreads_in` key tiles 1/e is what it was (0: nothing, and the first is as the
/// others), beside what both are off by: `of_tile` in each key tile and `at_begin` in the first. SMs with two are off
/// by `of_sm` for as long as a kernel runs, GPCs by `of_gpc`. The SMs of `mates` of the TPCs go together.
struct InStepTimes {
  double lag_at_launch = 0;  // whose CTAs begin so far apart; the others begin as those before them end
  double lag = 0, apart_at_first = 0, apart = 0, spreads_in = 0;
  bool older_does_not_vary = false;
  double of_tile = 0, at_begin = 0, of_sm = 0, of_gpc = 0, mates = 0;
  /// How far one is behind the other once they are apart, of all distances that there are by the `part` that is less.
  double behind(double part) const;
};
/// Of CTAs that begin with a launch, or in the place of others: with pages the former all go together.
InStepTimes in_step_times(bool pages, bool at_launch);

/// What `tiles` key tiles of a CTA that shares its SM with `sharing` - 1 others, of so many cycles each, take more or
/// less than on average: one is ahead of the other by no more than a key tile varies, however far they walk.
double varied_in_step(Slot& slot, const InStepTimes& times, double each, int tiles, int sharing, Noise& noise);

}  // namespace attest
