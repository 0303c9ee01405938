// Lists of pages on the device, for phases that do not walk a contiguous range.
#pragma once

#include "attest/hardware/device.h"
#include "page_numbers.h"

namespace attest::hardware {

static_assert(kListedPageBytes == kPageBytes);

using PageList = DeviceArray<std::uint32_t>;

}  // namespace attest::hardware
