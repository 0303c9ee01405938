#include "walk_options.h"

#include <fmt/format.h>

#include <string>

#include "attest/problem/error.h"

namespace attest {

LocalFrame frame_of(const std::optional<LocalFrame>& known, const KernelPlan& plan) {
  return known.value_or(
      LocalFrame{plan.spill_words_per_key_tile + plan.spill_words_per_cta, plan.spill_words_per_key_tile});
}

void check_walk_options(const TileWalkOptions& options, const KernelPlan& plan, const DeviceSpec& device) {
  for (const std::vector<std::vector<double>>& of_sharing : options.paces)
    for (const std::vector<double>& of_sms : of_sharing)
      if (static_cast<std::int64_t>(of_sms.size()) != device.num_sms)
        throw InvalidInput("paces", std::to_string(of_sms.size()),
                           fmt::format("must be none, or num_sms = {} of them", device.num_sms));
  const int words = frame_of(options.frame, plan).words;
  if (options.frame && options.frame->of_tile < 1 && plan.spill_words_per_key_tile > 0)
    throw InvalidInput("frame.of_tile", std::to_string(options.frame->of_tile),
                       "must be at least 1 where a tile stores");
  if (options.frame && options.frame->of_tile > words)
    throw InvalidInput("frame.of_tile", std::to_string(options.frame->of_tile),
                       fmt::format("must not exceed the frame's words, {}", words));
  if (options.frame && (options.frame->in_part < 0 || options.frame->in_part > plan.spill_words_per_cta))
    throw InvalidInput("frame.in_part", std::to_string(options.frame->in_part),
                       fmt::format("must be 0 to spill_words_per_cta = {}", plan.spill_words_per_cta));
  for (const SpillUses& of : options.spill_uses)
    for (const std::vector<SpillUse>* uses :
         {&of.whole, &of.masked, &of.first_whole, &of.first_masked, &of.begin, &of.end}) {
      double before = 0;
      for (const SpillUse& use : *uses) {
        if (!(use.at >= before && use.at < 1))
          throw InvalidInput("spill_uses.at", fmt::format("{:g}", use.at),
                             fmt::format("must be in [{:g}, 1), not before the use before it", before));
        if (use.word < 0 || use.word >= words)
          throw InvalidInput("spill_uses.word", std::to_string(use.word), fmt::format("must be in [0, {})", words));
        before = use.at;
      }
    }
}

}  // namespace attest
