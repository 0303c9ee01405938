// A campaign as JUnit's XML, which CI systems read.
#pragma once
#include <string>

#include "attest/fuzz/campaign.h"

namespace attest {

/// One testsuite with a testcase for each property: how often it was judged and with which statuses in its system-out,
/// a <failure> if it failed, an <error> if the kernel crashed or hung, with every way in which it did and the lines
/// that repeat them, and <skipped> where it was put to no case. Well-formed UTF-8 whatever the kernel said.
std::string to_junit(const CampaignOptions& options, const CampaignResult& result);

}  // namespace attest
