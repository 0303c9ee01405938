// What the CTAs of a few SMs do, one after the other, as a walk comes to it.
#pragma once
#include <cstdint>
#include <vector>

#include "attest/simulator/tile_walk.h"
#include "schedule.h"

namespace attest {

struct Slot;

class SmLog {
 public:
  /// Follows SMs that have work where there are so many tasks.
  SmLog(const Schedule& schedule, std::int64_t tasks);

  void start(int number, const Slot& slot, double now);
  /// It begins its walk's key tiles from `first` to before `last`.
  void key_tiles(int number, const Slot& slot, int first, int last, double now);
  void finish(int number, const Slot& slot, double now);
  const std::vector<SmEvents>& sms() const { return sms_; }

 private:
  /// Null where its SM is not followed, or no longer.
  SmEvents* of(int number);
  SmEvent event(SmEvent::Kind kind, int number, const Slot& slot, double now) const;

  const Schedule* schedule_;
  std::vector<int> place_;  // among sms_, by SM; -1: not followed
  std::vector<SmEvents> sms_;
  std::vector<std::size_t> finishes_;
};

}  // namespace attest
