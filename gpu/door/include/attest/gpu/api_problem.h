// A case and its tensors in the words of kernel_api.h, and back.
#pragma once
#include <functional>

#include "attest/gpu/kernel.h"
#include "attest/gpu/kernel_api.h"

namespace attest {

/// Points into c.
attest_problem to_api(const Case& c);
/// The case as a kernel may know it: without its inputs, and with pages in whatever table.
Case case_of(const attest_problem& problem);

/// What a case asks for, of attest_feature.
std::uint64_t features_of(const Case& c);
/// The word of one bit, such as "window"; "?" for one that this attest does not know.
const char* feature_word(std::uint64_t bit);

/// Sizes are those of c. `memory` is left out.
attest_forward to_api(const Case& c, const ForwardArgs& args);
ForwardArgs args_of(const attest_problem& problem, const attest_forward& args);
/// `forward` must live as long.
attest_backward to_api(const Case& c, const BackwardArgs& args, const attest_forward& forward);
BackwardArgs args_of(const attest_problem& problem, const attest_backward& args);

/// Where a pointer of the arguments is for the kernel.
using Relocate = std::function<void*(const void*)>;
/// The same arguments elsewhere; `memory` is left out.
ForwardArgs relocated(ForwardArgs args, const Relocate& to);
BackwardArgs relocated(BackwardArgs args, const Relocate& to);

}  // namespace attest
