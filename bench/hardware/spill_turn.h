// A turn of gpu/sm80's kernel whose registers are spilled by force, from spill_traces.csv: accesses, and where their
// values are waited for.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "spill_accesses.h"  // kSpillCycles, kSpillAccesses

namespace attest::hardware {

constexpr int kBurst = 96, kLater = 600;  // cycles

struct Event {
  int at = 0;
  char kind = 0;  // store, load, wait for a load, copy of a tile
  int word = 0, load = 0;
};

struct Turn {
  std::array<Event, 640> events{};
  std::array<int, 256> bursts{};  // their first events, and where the last one ends
  int count = 0, burst_count = 0, loads = 0, words = 0;

  constexpr void add(const Event& event) {
    int i = count++;
    for (; i > 0 && events[i - 1].at > event.at; --i) events[i] = events[i - 1];
    events[i] = event;
  }
};

constexpr Turn turn_of(const char* text) {
  Turn turn;
  const auto number = [&] {
    int n = 0;
    for (; *text >= '0' && *text <= '9'; ++text) n = 10 * n + (*text - '0');
    return n;
  };
  for (; *text != 0; text += *text == ' ') {
    Event event;
    event.at = number();
    const char letter = *text++;
    event.word = number();
    event.kind = letter == 's' ? 's' : 'l';
    int waited = kSpillCycles;
    if (*text == ':') ++text, waited = number();
    if (event.kind == 'l') event.load = turn.loads++;
    turn.words = std::max(turn.words, event.word + 1);
    turn.add(event);
    if (event.kind == 'l') turn.add({std::min(waited + kLater, kSpillCycles), 'w', event.word, event.load});
  }
  for (int tile = 0; tile < 2; ++tile) turn.add({kSpillCycles * (2 * tile + 1) / 4, 'c', tile});
  int began = -kBurst;
  for (int i = 0; i < turn.count; ++i)
    if (turn.events[i].at >= began + kBurst) turn.bursts[turn.burst_count++] = i, began = turn.events[i].at;
  turn.bursts[turn.burst_count] = turn.count;
  return turn;
}
constexpr Turn kTurn = turn_of(kSpillAccesses);
constexpr int kMaskWords = (kTurn.loads + 31) / 32;

/// Bits of loads.
struct Mask {
  std::uint32_t plays[kMaskWords], timed[kMaskWords];
};

constexpr Mask loads_of(int first, int end) {
  Mask mask{};
  for (int i = first; i < end; ++i)
    if (const Event& e = kTurn.events[i]; e.kind == 'l') mask.timed[e.load / 32] |= 1u << e.load % 32;
  return mask;
}

}  // namespace attest::hardware
