// Numerics in the words of kernel_api.h, and back.
#pragma once
#include <string>

#include "attest/gpu/kernel_api.h"
#include "attest/problem/case.h"
#include "attest/problem/numerics.h"

namespace attest {

/// Of one of attest_arithmetic.
Numerics numerics_of_scheme(std::int32_t arithmetic, const Case& c);

attest_numerics to_api(const Numerics& numerics);
/// Throws std::runtime_error naming the first field outside the limits that kernel_api.h gives.
Numerics numerics_of(const attest_numerics& api, std::string name);

}  // namespace attest
