#include "sm_log.h"

#include <algorithm>
#include <numeric>
#include <ranges>

#include "grid.h"
#include "traffic.h"

namespace attest {

SmLog::SmLog(const Schedule& schedule, std::int64_t tasks) : schedule_(&schedule) {
  constexpr std::int64_t followed = 12;
  for (const int sm : schedule.spread_sms(followed, tasks)) {
    if (place_.size() <= static_cast<std::size_t>(sm)) place_.resize(static_cast<std::size_t>(sm) + 1, -1);
    place_[static_cast<std::size_t>(sm)] = static_cast<int>(sms_.size());
    sms_.push_back({schedule.number_on_device(sm), {}});
  }
  finishes_.resize(sms_.size());
}

SmEvents* SmLog::of(int number) {
  const auto sm = static_cast<std::size_t>(schedule_->sm(number));
  if (sm >= place_.size() || place_[sm] < 0) return nullptr;
  const auto at = static_cast<std::size_t>(place_[sm]);
  return finishes_[at] < SmEvents::finishes ? &sms_[at] : nullptr;
}

SmEvent SmLog::event(SmEvent::Kind kind, int number, const Slot& slot, double now) const {
  return {kind, number / schedule_->slots_a_round(), now, {slot.at.batch, slot.at.head, slot.at.q_tile, slot.at.split}};
}

void SmLog::start(int number, const Slot& slot, double now) {
  if (SmEvents* const sm = of(number); sm != nullptr && slot.rows > 0)
    sm->events.push_back(event(SmEvent::Kind::start, number, slot, now));
}

void SmLog::key_tiles(int number, const Slot& slot, int first, int last, double now) {
  SmEvents* const sm = of(number);
  if (sm == nullptr) return;
  const auto add = [&](int position) {
    const SmEvent e =
        event(is_masked(slot.walk, position) ? SmEvent::Kind::masked : SmEvent::Kind::whole, number, slot, now);
    int alike = 0;
    for (const SmEvent& before : std::views::reverse(sm->events)) {
      if (before.kind == SmEvent::Kind::start || before.kind == SmEvent::Kind::finish) break;
      alike += before.slot == e.slot && before.kind == e.kind ? 1 : 0;
    }
    if (alike < 2) sm->events.push_back(e);
  };
  // of an event of thousands, those at its ends and in its middle, which are of each of its kinds
  if (last - first > 5)
    for (const int position : {first, first + 1, std::midpoint(first, last), last - 2, last - 1}) add(position);
  else
    for (int position = first; position < last; ++position) add(position);
}

void SmLog::finish(int number, const Slot& slot, double now) {
  SmEvents* const sm = of(number);
  if (sm == nullptr || slot.rows == 0) return;
  sm->events.push_back(event(SmEvent::Kind::finish, number, slot, now));
  ++finishes_[static_cast<std::size_t>(sm - sms_.data())];
}

}  // namespace attest
