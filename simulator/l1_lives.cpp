#include "l1_lives.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace attest {

namespace {

constexpr int placements = 2;  // of frames to output, on each SM

class Sm {
 public:
  Sm(const CtaWords& words, int warps, const SmEvents& of,
     const std::function<std::vector<PassingTile>(const StoredTile&)>& output, int lines, const FramePlaces& places,
     std::int64_t buffer)
      : warps_(warps),
        slots_(1 + std::ranges::max(of.events, {}, &SmEvent::slot).slot),
        frames_(places, of.sm, used_words(words), slots_ * warps),
        cache_(lines, rows(of, output, buffer)),
        last_(static_cast<std::size_t>(slots_), SmEvent::Kind::start),
        missed_of_(static_cast<std::size_t>(slots_)) {
    auto stored = outputs_.begin();
    for (const SmEvent& e : of.events) {
      const SmEvent::Kind before = std::exchange(last_[static_cast<std::size_t>(e.slot)], e.kind);
      switch (e.kind) {
        case SmEvent::Kind::start:
          use(e, words.start);
          break;
        case SmEvent::Kind::masked:
          if (before != e.kind) use(e, words.run);
          use(e, words.masked);
          break;
        case SmEvent::Kind::whole:
          if (before != e.kind) use(e, words.run), use(e, words.enter);
          use(e, words.whole);
          break;
        case SmEvent::Kind::finish:
          use(e, words.finish);
          for (const int line : *stored++) cache_.store(line);
          missed_ += std::exchange(missed_of_[static_cast<std::size_t>(e.slot)], 0), ++finishes_;
      }
    }
  }
  std::int64_t missed() const { return missed_; }
  std::int64_t finishes() const { return finishes_; }

 private:
  void use(const SmEvent& e, const std::vector<SpillAccess>& accesses) {
    for (const SpillAccess& a : accesses)
      for (int warp = e.slot * warps_; warp < (e.slot + 1) * warps_; ++warp) {
        const int line = frames_.line(warp, a.word);
        if (a.kind == SpillAccess::Kind::store)
          cache_.store(line);
        else if (a.kind != SpillAccess::Kind::call)
          missed_of_[static_cast<std::size_t>(e.slot)] +=
              cache_.load(line, a.kind == SpillAccess::Kind::last_load) ? 0 : 1;
      }
  }
  /// Of frames, and of what is stored, which is noted event by event.
  std::vector<std::uint32_t> rows(const SmEvents& of,
                                  const std::function<std::vector<PassingTile>(const StoredTile&)>& output,
                                  std::int64_t buffer) {
    AddressedLines addressed(frames_.rows());
    for (const SmEvent& e : of.events) {
      if (e.kind != SmEvent::Kind::finish) continue;
      std::vector<int>& lines = outputs_.emplace_back();
      for (const PassingTile& tile : output(e.tile))
        for (int row = 0; row < tile.rows; ++row)
          addressed.for_lines(buffer + tile.first_byte + row * tile.stride_bytes, tile.row_bytes,
                              [&](int line) { lines.push_back(line); });
    }
    return addressed.rows();
  }

  int warps_, slots_;
  Frames frames_;
  std::vector<std::vector<int>> outputs_;  // lines, in order
  L1Cache cache_;
  std::vector<SmEvent::Kind> last_;      // by slot
  std::vector<std::int64_t> missed_of_;  // by a slot's CTA so far
  std::int64_t missed_ = 0, finishes_ = 0;
};

}  // namespace

int used_words(const CtaWords& cta) {
  int words = 0;
  for (const std::vector<SpillAccess>* of : {&cta.start, &cta.run, &cta.enter, &cta.masked, &cta.whole, &cta.finish})
    for (const SpillAccess& a : *of) words = std::max(words, a.word + 1);
  return words;
}

double missed_in_lives(const CtaWords& words, int warps, std::span<const SmEvents> sms,
                       const std::function<std::vector<PassingTile>(const StoredTile&)>& output, int lines,
                       const FramePlaces& places) {
  std::int64_t missed = 0, finishes = 0;
  for (const SmEvents& of : sms)
    for (int placement = 0; placement < placements && !of.events.empty(); ++placement) {
      const std::int64_t buffer =
          buffer_at_random(static_cast<std::uint64_t>(of.sm) * placements + static_cast<std::uint64_t>(placement));
      const Sm sm(words, warps, of, output, lines, places, buffer);
      missed += sm.missed(), finishes += sm.finishes();
    }
  return finishes == 0 ? 0 : static_cast<double>(missed) / static_cast<double>(finishes);
}

}  // namespace attest
