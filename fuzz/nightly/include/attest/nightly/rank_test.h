// Are these figures larger than those, or is it chance?
#pragma once
#include <span>

namespace attest {

/// The middle value; between the two middle ones of an even number. Of at least one.
double median(std::span<const double> values);

/// The one-sided p-value of Mann and Whitney's rank test (Ann. Math. Statist. 18, 1947): where `larger` and `others`
/// are draws of one distribution, how probable is a rank sum of `larger` of at least what is seen? Exact for every size
/// and with ties, which share their mean rank: of the C(n + m, n) ways to choose which ranks are `larger`'s, all
/// equally probable, the share whose sum reaches it. Time and memory grow as n (n + m)^2 n. 1 where either is empty.
double larger_by_chance(std::span<const double> larger, std::span<const double> others);

}  // namespace attest
