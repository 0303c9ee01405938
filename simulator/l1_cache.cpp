#include "l1_cache.h"

#include <algorithm>
#include <bit>

namespace attest {
namespace {

// What each bit of the number of a row of four lines, its virtual address / 512, changes of a line's set and of its
// bank (docs/results/h200-l1.md).
constexpr std::array<std::size_t, 30> set_bits = {33, 22, 44,  12, 114, 123, 47, 82, 58, 92, 75, 54, 42,  61,  50,
                                                  89, 76, 111, 8,  20,  123, 41, 34, 49, 70, 56, 60, 115, 109, 5};
constexpr std::array<std::size_t, 30> bank_bits = {1, 2, 3, 1, 2, 3, 2, 1, 2, 1, 3, 1, 3, 2, 1,
                                                   3, 1, 3, 2, 3, 1, 3, 1, 2, 3, 2, 1, 3, 1, 3};
/// The same by the bits of a set or a bank: which of a row's number it is the parity of.
template <std::size_t bits>
constexpr std::array<std::uint32_t, bits> rows_of(const std::array<std::size_t, 30>& changed) {
  std::array<std::uint32_t, bits> rows{};
  for (std::size_t row_bit = 0; row_bit < changed.size(); ++row_bit)
    for (std::size_t bit = 0; bit < bits; ++bit)
      rows[bit] |= static_cast<std::uint32_t>(changed[row_bit] >> bit & 1) << row_bit;
  return rows;
}
constexpr std::array<std::uint32_t, 7> rows_of_set = rows_of<7>(set_bits);
constexpr std::array<std::uint32_t, 2> rows_of_bank = rows_of<2>(bank_bits);
std::size_t parities(std::uint32_t row, std::span<const std::uint32_t> masks) {
  std::size_t all = 0;
  for (std::size_t bit = 0; bit < masks.size(); ++bit)
    all |= static_cast<std::size_t>(std::popcount(row & masks[bit]) & 1) << bit;
  return all;
}
// CUDA C++ Programming Guide, Compute Capabilities: what shared memory may be set to on each, as far as it goes there
constexpr std::int64_t configurations_kib[] = {0, 8, 16, 32, 64, 100, 132, 164, 196, 228};

}  // namespace

L1Cache::L1Cache(int lines, std::span<const std::uint32_t> rows, std::size_t hand) : lines_(rows.size() * banks) {
  place_of_.reserve(rows.size());
  for (const std::uint32_t row : rows) place_of_.push_back({parities(row, rows_of_set), parities(row, rows_of_bank)});
  for (Bank& bank : banks_) bank.room = std::max(0, lines - reserved_lines) / banks, bank.hand = hand;
}

void L1Cache::evict(Bank& bank, std::vector<int>& set) {
  const auto chosen = std::min_element(set.begin(), set.end(), [this](int a, int b) {
    if (has_come(a) != has_come(b)) return has_come(a);
    const Line &x = at(a), &y = at(b);
    const auto order = [](const Line& line) {
      return line.state == State::evict_first ? 0 : line.state == State::marked ? 2 : 1;
    };
    if (order(x) != order(y)) return order(x) < order(y);
    return x.state == State::evict_first ? x.way < y.way : x.used < y.used;
  });
  at(*chosen) = {};
  set.erase(chosen);
  --bank.lines;
}

std::size_t L1Cache::free_way(const std::vector<int>& set) const {
  std::size_t way = 0;
  while (std::ranges::any_of(set, [&](int line) { return at(line).way == way; })) ++way;
  return way;
}

void L1Cache::evict_at_hand(Bank& bank) {
  for (std::size_t passed = 0; passed < sets_a_bank; ++passed) {
    std::vector<int>& set = bank.sets[bank.hand];
    bank.hand = (bank.hand + 1) % sets_a_bank;
    if (std::ranges::none_of(set, [this](int line) { return has_come(line); })) continue;
    return evict(bank, set);
  }
}

bool L1Cache::use(int line, bool keep, double takes) {
  Bank& bank = bank_of(line);
  Line& of = at(line);
  const bool hit = of.state != State::absent;
  ++accesses_;
  if (hit && keep) {
    of.state = State::marked, of.used = accesses_;
    std::vector<int>& set = bank.sets[place(line).set];
    if (std::ranges::all_of(set, [this](int each) { return at(each).state == State::marked; }))
      for (const int each : set) at(each).state = each == line ? State::marked : State::held;
  }
  if (hit && !keep && of.state != State::transient) of.state = State::evict_first, of.used = accesses_;
  if (bank.lines > bank.room)
    for (int n = hit ? 1 : evicted_by_a_miss; n > 0 && bank.lines > 0; --n) evict_at_hand(bank);
  if (hit || bank.room == 0) return hit;
  std::vector<int>& set = bank.sets[place(line).set];
  if (set.size() == ways) evict(bank, set);
  of = {keep ? State::held : State::transient, free_way(set), accesses_, time_ + takes};
  set.push_back(line);
  ++bank.lines;
  if (!keep) transients_.push({of.arrives, line, accesses_}), advance(time_);
  return false;
}

void L1Cache::advance(double now) {
  time_ = now;
  for (; !transients_.empty() && transients_.top().arrives <= now; transients_.pop()) {
    const auto [arrives, line, since] = transients_.top();
    if (at(line).state != State::transient || at(line).used != since) continue;
    std::erase(bank_of(line).sets[place(line).set], line);
    --bank_of(line).lines;
    at(line) = {};
  }
}

std::int64_t smem_set_aside(std::int64_t bytes, const DeviceSpec& device) {
  for (const std::int64_t kib : configurations_kib)
    if (bytes <= 1024 * kib && 1024 * kib <= device.smem_bytes_per_sm) return 1024 * kib;
  return device.smem_bytes_per_sm;
}

int l1_lines(std::int64_t smem_bytes, int ctas, const DeviceSpec& device) {
  const std::int64_t taken = ctas * (smem_bytes + device.smem_reserved_bytes_per_cta);
  return static_cast<int>((device.l1_and_smem_bytes_per_sm - smem_set_aside(taken, device)) / L1Cache::line_bytes);
}

}  // namespace attest
