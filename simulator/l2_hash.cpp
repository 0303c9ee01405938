#include "l2_hash.h"

#include <bit>
#include <initializer_list>
#include <span>

namespace attest {
namespace {

constexpr std::uint64_t bits(std::initializer_list<int> numbers) {
  std::uint64_t mask = 0;
  for (const int number : numbers) mask |= std::uint64_t{1} << number;
  return mask;
}

// What a line's bits from 29 on do is not known, nor what an H100's home has of those from 22 on.
constexpr L2Hash::Gpu h100{
    40,
    5,
    0,
    3,
    0,
    {0, 0, 0, bits({1, 5, 10, 12, 13, 14, 21, 23, 24, 26, 27}),
     bits({3, 6, 10, 11, 15, 16, 18, 19, 24, 25, 26, 27, 28}),
     bits({4, 7, 10, 12, 13, 16, 17, 19, 20, 22, 23, 25, 26, 27, 28}),
     bits({4, 5, 9, 12, 14, 17, 18, 22, 23, 25, 26, 28}), bits({6, 7, 8, 11, 13, 14, 16, 17, 19, 21, 24, 26, 27}),
     bits({7, 11, 12, 15, 16, 17, 20, 23, 25}), bits({5, 6, 9, 10, 12, 16, 17, 18, 19})}};
constexpr L2Hash::Gpu h200{
    48,
    47,
    3,
    0,
    40,
    {bits({1, 5, 9, 11, 13, 15, 17, 19, 23, 26, 28}),
     bits({3, 6, 9, 10, 11, 12, 14, 15, 16, 17, 19, 20, 21, 22, 23, 24, 25, 27}),
     bits({4, 7, 10, 11, 14, 18, 21, 25, 26, 28}), bits({4, 6, 9, 12, 13, 14, 15, 16, 19, 22, 23, 24, 26, 28}),
     bits({7, 9, 10, 11, 12, 15, 18, 20, 23, 24, 25, 26}),
     bits({3, 6, 8, 9, 11, 12, 13, 14, 16, 17, 18, 19, 20, 21, 25, 27, 28}), 0, 0, 0,
     bits({5, 6, 8, 10, 12, 14, 15, 17, 19, 20, 21, 22, 24, 27, 28})}};

// By the bits of a segment's number: what changes the six bits of a set, and the two lowest of the number before it is
// taken modulo 5. The same on both GPUs. What its bits from 17 on do is not known.
constexpr std::array<std::uint64_t, 8> of_segment{bits({4, 5, 7, 8, 9, 11, 12, 13}),
                                                  bits({3, 5, 8, 9, 11, 13, 15, 16}),
                                                  bits({2, 3, 10, 11, 16}),
                                                  bits({2, 5, 7, 8, 9, 13, 15, 16}),
                                                  bits({3, 6, 7, 8, 10, 12, 14, 15}),
                                                  bits({2, 4, 5, 7, 8, 10, 11, 12, 14}),
                                                  bits({2, 3, 4, 5, 6, 8, 10, 11, 13, 15}),
                                                  bits({5, 8, 9, 13, 14})};
// And of its directory set: what changes the four bits that a set's lowest go with, and the five others.
constexpr std::array<std::uint64_t, 9> of_directory{bits({0, 15}),
                                                    bits({0, 8, 9, 10}),
                                                    bits({2, 3, 8, 9}),
                                                    bits({4, 8, 15}),
                                                    bits({1, 5, 7, 10}),
                                                    bits({0, 3, 7, 8, 11, 12}),
                                                    bits({0, 2, 6, 7, 8, 11, 13}),
                                                    bits({0, 4, 7, 9, 11, 14}),
                                                    bits({1, 4, 6, 7, 9, 15})};
constexpr std::array<int, 3> of_set{9, 2, 0};  // bits of a line's number that a set has as they are

std::uint32_t parities(std::uint64_t x, std::span<const std::uint64_t> masks) {
  std::uint32_t all = 0;
  for (std::size_t i = 0; i < masks.size(); ++i)
    all |= static_cast<std::uint32_t>(std::popcount(x & masks[i]) & 1) << i;
  return all;
}

std::uint32_t key(std::uint64_t segment) {
  const std::uint32_t changes = parities(segment, of_segment);
  const auto group = static_cast<std::uint32_t>((segment ^ changes >> 6) % L2Hash::groups);
  return group * L2Hash::sets_a_group + (changes & (L2Hash::sets_a_group - 1));
}

/// Null where it is neither.
const L2Hash::Gpu* gpu_of(const DeviceSpec& device) {
  const std::int64_t slices = device.l2_slices_per_partition;
  if (device.l2_partitions != 2 ||
      device.l2_bytes != 2 * slices * L2Hash::sets_a_slice * device.l2_ways * L2Hash::line_bytes)
    return nullptr;
  return slices == h100.slices ? &h100 : slices == h200.slices ? &h200 : nullptr;
}

}  // namespace

bool L2Hash::known(const DeviceSpec& device) { return gpu_of(device) != nullptr; }

std::uint32_t L2Hash::slices(const DeviceSpec& device) {
  const Gpu* const gpu = gpu_of(device);
  return gpu->parts << gpu->slice_bits;
}

L2Hash::L2Hash(const DeviceSpec& device) : of_(*gpu_of(device)) {
  for (std::uint32_t i = 0; i < 8 * of_.parts; ++i)
    eighths_[i] = {static_cast<std::uint8_t>(i % of_.parts), static_cast<std::uint8_t>(i / of_.parts)};
  for (std::uint32_t line = 0; line < block_lines; ++line) {
    of_low_[line] = parities(line, of_.masks);
    for (std::size_t i = 0; i < of_set.size(); ++i) of_low_[line] |= (line >> of_set[i] & 1) << (of_.masks.size() + i);
  }
}

L2Hash::Block L2Hash::block(std::uint64_t number) const {
  const std::uint64_t unit = number << of_.unit_bits, segment = unit / of_.parts;
  return {parities(number * block_lines, of_.masks),
          static_cast<std::uint32_t>(unit % of_.parts),
          {key(segment), key(segment + 1)},
          {parities(segment, of_directory), parities(segment + 1, of_directory)}};
}

}  // namespace attest
