// A table of kernel_api.h as a kernel under test: the one adapter, for kernels of a library and for built-in ones.
#pragma once
#include <memory>
#include <string>

#include "attest/gpu/kernel.h"
#include "attest/gpu/kernel_api.h"
#include "attest/gpu/run_place.h"

namespace attest {

/// The table as far as this attest knows it; what an older library lacks is null. Throws EnvironmentError for a table
/// of another ABI: null, or an abi_version or a struct_size that is not this one's.
attest_kernel_api read_api(const attest_kernel_api* api);

/// The record that a table points to, likewise; EnvironmentError where it is another ABI's or there is none.
attest_capability read_record(const attest_kernel_api& api);

/// What it declares. Throws InvalidInput naming the field: no or an unprintable name, bits that no dtype has, an
/// lse_base that is none, and so on.
Capability read_capability(const attest_capability& record);

/// Makes the kernel: create(options). Whatever the table's functions give that they must not (an unknown status, a
/// negative workspace, numerics out of range) is an error of that call, which names field, value and limit. Throws
/// InvalidInput for ATTEST_INVALID, EnvironmentError for ATTEST_NO_ENVIRONMENT, and otherwise std::runtime_error with
/// the kernel's message.
std::unique_ptr<Kernel> make_table_kernel(const attest_kernel_api* api, const std::string& options,
                                          std::unique_ptr<RunPlace> place);
/// Of a kernel that is made already: `self`, which the table's destroy() ends.
std::unique_ptr<Kernel> make_table_kernel(const attest_kernel_api& api, void* self, std::unique_ptr<RunPlace> place);

}  // namespace attest
