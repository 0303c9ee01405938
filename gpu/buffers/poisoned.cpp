#include "attest/gpu/poisoned.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

#include "attest/gpu/guarded.h"

namespace attest {
namespace {

constexpr std::size_t alignment = 256, smallest_capacity = 1 << 19;

bool guarded = false;

// What stands in the page before an allocation.
struct Allocation {
  std::size_t all_bytes;               // with this page
  std::byte *writable, *end_writable;  // the pages that are not guarded
};

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

Allocation& allocation_of(std::byte* memory) { return *reinterpret_cast<Allocation*>(memory - page_bytes()); }

std::byte* allocate(std::size_t bytes) {
  const std::size_t all = page_bytes() + bytes;
  void* const mapped = ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  std::byte* const memory = static_cast<std::byte*>(mapped) + page_bytes();
  new (mapped) Allocation{all, memory, memory + bytes};
  return memory;
}

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

// All of `memory` can be read, and the pages that [begin, end) touches can be written.
void guard(std::byte* memory, std::size_t bytes, const std::byte* begin, const std::byte* end) {
  const auto first = static_cast<std::size_t>(begin - memory) / page_bytes() * page_bytes();
  const std::size_t last = std::min(bytes, round_up(static_cast<std::size_t>(end - memory), page_bytes()));
  Allocation& allocation = allocation_of(memory);
  if (allocation.writable == memory + first && allocation.end_writable == memory + last) return;
  allocation.writable = memory + first, allocation.end_writable = memory + last;
  ::mprotect(memory + first, last - first, PROT_READ | PROT_WRITE);
  ::mprotect(memory, first, PROT_READ);
  ::mprotect(memory + last, bytes - last, PROT_READ);
}

}  // namespace

void guard_around_margins() { guarded = true; }

void PoisonedMemory::Free::operator()(std::byte* p) const { ::munmap(p - page_bytes(), allocation_of(p).all_bytes); }

void PoisonedMemory::reserve(std::size_t bytes, std::size_t offset, std::size_t margin, std::size_t slack) {
  margin = round_up(margin, alignment);
  slack = round_up(slack, alignment);
  const std::size_t needed = round_up(bytes + offset + 2 * (margin + slack), alignment);
  if (needed > capacity_) {
    const std::size_t grown = round_up(std::max({needed, smallest_capacity, capacity_ + capacity_ / 2}), page_bytes());
    memory_.reset(allocate(grown));
    capacity_ = grown;
    fill_words(memory_.get(), capacity_, nan_word);
  }
  bytes_ = bytes;
  margin_ = margin;
  data_ = memory_.get() + slack + margin + offset;
  if (guarded) guard(memory_.get(), capacity_, data_ - margin, data_ + bytes + margin);
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
