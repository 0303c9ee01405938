// What must be true of a right kernel's answer to a case.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "attest/fuzz/trial.h"
#include "attest/reference/compare.h"

namespace attest {

/// `reference` and `hazards` judge the case's own run. The others make variations of it whose answer follows without a
/// reference (probes), or must equal the case's own answer (relations): bit for bit where the kernel declares that, and
/// within the sum of both budgets otherwise.
struct Property {
  std::string_view name;
  int share;  // of the cases to which it applies: in how many of 64 a campaign runs it
  bool (*applies)(const Case&);
  Verdict (*run)(Trial&);
};

/// hazards     no ordering of the kernel's program was violated
/// reference   both channels within the worst-case and the statistical budget, in poisoned memory (compare())
/// zero_q      Q = 0: LSE = ln(visible keys), which resolves one key in 10^5 and more
/// one_v       V = 1: O = 1 where a key is visible, 0 elsewhere
/// one_hot_v   Q = 0 and V[j] = e_(j mod headdim_v): O counts the visible keys of each residue
/// shift       a constant added to every score leaves O alone and moves LSE by it
/// gqa         shared key heads give what repeated key heads give
/// batch       a batch gives what its members give alone
/// key_permutation   keys that the same rows see may change places, together with their values
/// layout      the same values lying elsewhere in memory give the same result
/// packing     nor does it matter whether they are packed, padded or in pages
/// rewriting   the same problem in other words: causal as a window, ALiBi as a bias, a prefix that hides nothing, ...
/// documents   a document gives what its positions give alone
/// splits      keys in splits give what they give in one piece
/// descale     factors of 8-bit inputs may move between q and k, and out of v
/// repeat      the same call gives the same bits again after another one with another scale
/// accumulator large numbers cancel in O and leave exactly what was added beside them
/// weights     V that cancels P leaves nothing: P has all the bits its kernel declares
/// lookup      a query that is one key's word gives that key's V and its score
/// mask        the exact set of keys that each row sees, read from coded V, is that of attends()
/// counts      what the simulator counts of the named plans is a count over attends(): of attest itself, not the kernel
std::span<const Property> properties();

/// The property of that name; throws InvalidInput naming `property`.
const Property& property_named(std::string_view name);

/// Runs one property. What the kernel throws becomes Status::crashed, a hazard of any of its runs Status::hazard.
Verdict judge(const Property& property, Trial& trial);

/// Status::crashed, with what was thrown.
Verdict thrown(const KernelThrew& error);

/// Which properties case k of a campaign is put to: a pure function of its arguments. Always the first two.
std::vector<const Property*> properties_for(std::uint64_t seed, std::uint64_t k, const Case& c);

}  // namespace attest
