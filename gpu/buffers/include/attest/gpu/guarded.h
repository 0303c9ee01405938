// What a kernel on the CPU may not write to at all.
#pragma once

namespace attest {

/// From here on, in this process, pages around a tensor's margins can be read and not written while a kernel runs
/// (PoisonedMemory): one that writes further than what is checked crashes there. For processes whose crash is a
/// finding.
void guard_around_margins();

}  // namespace attest
