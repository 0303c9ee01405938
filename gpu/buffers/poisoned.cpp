#include "attest/gpu/poisoned.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>

namespace attest {
namespace {

constexpr std::size_t alignment = 256, smallest_capacity = 1 << 19;

std::size_t round_up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

std::int64_t differences(const std::byte* a, const std::byte* b, std::size_t count) {
  if (std::memcmp(a, b, count) == 0) return 0;
  std::int64_t different = 0;
  for (std::size_t i = 0; i < count; ++i) different += a[i] != b[i];
  return different;
}

// By bytes, because a tensor of 8-bit elements may begin and end on an odd one.
void fill_words(std::byte* begin, std::size_t bytes, std::uint16_t word) {
  constexpr std::size_t block = 256;
  std::uint16_t words[block / 2];
  std::fill(std::begin(words), std::end(words), word);
  for (; bytes > block; bytes -= block, begin += block) std::memcpy(begin, words, block);
  std::memcpy(begin, words, bytes);
}

}  // namespace

void PoisonedMemory::Free::operator()(std::byte* p) const { std::free(p); }

void PoisonedMemory::reserve(std::size_t bytes, std::size_t offset, std::size_t margin, std::size_t slack) {
  margin = round_up(margin, alignment);
  slack = round_up(slack, alignment);
  const std::size_t needed = round_up(bytes + offset + 2 * (margin + slack), alignment);
  if (needed > capacity_) {
    const std::size_t grown = std::max({needed, smallest_capacity, round_up(capacity_ + capacity_ / 2, alignment)});
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, grown)));
    if (!memory_) throw std::bad_alloc();
    capacity_ = grown;
    fill_words(memory_.get(), capacity_, nan_word);
  }
  bytes_ = bytes;
  margin_ = margin;
  data_ = memory_.get() + slack + margin + offset;
}

void PoisonedMemory::fill_nan() { fill_words(data_ - margin_, bytes_ + 2 * margin_, nan_word); }

void PoisonedMemory::fill_pattern(bool flipped) {
  constexpr std::size_t period = 126;
  std::uint16_t words[period];
  // margin_ / 2 words lie before word 0; start the table so that word 0 gets its first entry.
  const std::size_t phase = (period - margin_ / 2 % period) % period;
  for (std::size_t i = 0; i < period; ++i) {
    const auto value = static_cast<std::uint16_t>((i + phase) % period);
    words[i] = flipped ? static_cast<std::uint16_t>(period - value) : static_cast<std::uint16_t>(1 + value);
  }
  std::byte* out = data_ - margin_;
  for (std::size_t left = bytes_ + 2 * margin_; left > 0;) {
    const std::size_t count = std::min(left, sizeof words);
    std::memcpy(out, words, count);
    out += count;
    left -= count;
  }
}

void PoisonedMemory::remember() { copy_.assign(data_ - margin_, data_ + bytes_ + margin_); }

std::int64_t PoisonedMemory::changed() const {
  return differences(data_ - margin_, copy_.data(), bytes_ + 2 * margin_);
}

void PoisonedMemory::restore() { std::memcpy(data_ - margin_, copy_.data(), copy_.size()); }

}  // namespace attest
