#include "attest/gpu/poisoned.h"

#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "attest/gpu/guarded.h"

namespace attest {
namespace {

std::uint16_t word_at(const PoisonedMemory& memory, std::ptrdiff_t index) {
  std::uint16_t word = 0;
  std::memcpy(&word, memory.data() + 2 * index, 2);
  return word;
}

TEST(PoisonedMemory, DataLiesOffsetBytesOffTheAlignment) {
  PoisonedMemory memory;
  for (const std::size_t offset : {0u, 2u, 14u, 256u, 510u}) {
    memory.reserve(100, offset, 300, 1000);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 256, offset % 256);
  }
}

TEST(PoisonedMemory, NanWordIsNanInEveryDtype) {
  const std::uint32_t twice = PoisonedMemory::nan_word * 0x10001u;
  float value = 0;
  std::memcpy(&value, &twice, 4);
  EXPECT_TRUE(std::isnan(value));
  EXPECT_EQ(PoisonedMemory::nan_word & 0x7C00, 0x7C00);  // fp16: exponent all ones, and a mantissa
  EXPECT_NE(PoisonedMemory::nan_word & 0x03FF, 0);
  EXPECT_EQ(PoisonedMemory::nan_word & 0x7F80, 0x7F80);  // bf16 likewise
  EXPECT_NE(PoisonedMemory::nan_word & 0x007F, 0);
}

TEST(PoisonedMemory, PatternsAreSubnormalInEveryDtypeAndShareNoWord) {
  PoisonedMemory one, other;
  one.reserve(1000, 0, 512, 0);
  other.reserve(1000, 0, 512, 0);
  one.fill_pattern(false);
  other.fill_pattern(true);
  EXPECT_EQ(word_at(one, 0), 1);
  EXPECT_EQ(word_at(other, 0), 126);
  for (std::ptrdiff_t i = -256; i < 500 + 256; ++i) {
    EXPECT_NE(word_at(one, i), word_at(other, i));
    for (const PoisonedMemory* memory : {&one, &other}) {
      EXPECT_GE(word_at(*memory, i), 1);
      EXPECT_LT(word_at(*memory, i), 0x80);  // below bf16's smallest normal, and so below fp16's and fp32's
    }
  }
}

TEST(PoisonedMemory, SeesAChangeOnEitherSideOfEveryEdge) {
  PoisonedMemory memory;
  memory.reserve(64, 2, 256, 256);
  memory.fill_nan();
  memory.remember();
  EXPECT_EQ(memory.changed(), 0);
  for (const std::ptrdiff_t at : {-256, -1, 0, 63, 64, 64 + 255}) {
    memory.data()[at] = std::byte{0};
    EXPECT_EQ(memory.changed(), 1) << at;
    memory.restore();
    EXPECT_EQ(memory.changed(), 0) << at;
  }
  for (const std::ptrdiff_t beyond : {-257, 64 + 256}) {  // slack: ours, unchecked
    memory.data()[beyond] = std::byte{0};
    EXPECT_EQ(memory.changed(), 0) << beyond;
  }
}

TEST(PoisonedMemory, KeepsItsAllocation) {
  PoisonedMemory memory;
  memory.reserve(1 << 16, 0, 256, 256);
  const std::byte* const large = memory.data();
  memory.reserve(64, 0, 256, 256);
  EXPECT_EQ(memory.data(), large);
}

// In a process of its own: guarding has no end.
TEST(PoisonedMemory, GuardedItCanBeReadAroundTheMarginsAndNotWritten) {
  constexpr std::ptrdiff_t margin = 512, slack = 1 << 16;
  for (const std::ptrdiff_t bytes : {64, 100'000}) {
    PoisonedMemory memory;
    memory.reserve(1 << 20, 0, margin, slack);  // its pages are guarded anew below
    const auto write = [&](std::ptrdiff_t at) {
      guard_around_margins();
      for (const std::size_t before : {1 << 19, 1}) memory.reserve(before, 0, margin, slack);
      memory.reserve(static_cast<std::size_t>(bytes), 0, margin, slack);
      memory.fill_nan();  // all that is ours
      volatile std::byte* const data = memory.data();
      std::_Exit((data[at] = data[at], 7));
    };
    for (const std::ptrdiff_t at : {-margin, bytes + margin - 1})
      EXPECT_EXIT(write(at), testing::ExitedWithCode(7), "");
    for (const std::ptrdiff_t at : {-margin - 4096, -margin - slack, bytes + margin + 4095, bytes + margin + slack - 1})
      EXPECT_EXIT(write(at), testing::KilledBySignal(SIGSEGV), "") << bytes << " at " << at;
    memory.data()[-margin - slack] = std::byte{1};  // here nothing is guarded
  }
}

}  // namespace
}  // namespace attest
