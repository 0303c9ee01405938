#include "attest/simulator/hazards.h"

#include <fmt/format.h>

namespace attest {

void HazardChecker::step(const Step& step) {
  step_ = step;
  Warp& warp = warps_[static_cast<std::size_t>(warp_)];
  switch (step.kind) {
    case Step::Kind::commit:
      ++warp.committed;
      break;
    case Step::Kind::wait:
      while (static_cast<int>(warp.completed.size()) < warp.committed - step.slot)
        warp.completed.push_back({epoch_, warp.sync});
      break;
    case Step::Kind::barrier:
    case Step::Kind::warp_barrier:
      ++warp.sync;
      break;
    default:
      break;
  }
}

void HazardChecker::shared(const SharedAccess& access) {
  const bool reads = access.kind == SharedAccess::Kind::load_matrix || access.kind == SharedAccess::Kind::load_word ||
                     access.kind == SharedAccess::Kind::load_staged;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    if ((access.active >> lane & 1) == 0) continue;
    const std::uint32_t address = access.address[lane];
    if (address % static_cast<std::uint32_t>(access.bytes) != 0)
      report(fmt::format("{} is accessed at a misaligned address", to_string(access.operand)));
    if (address / 16 >= chunks_.size()) {
      report(fmt::format("{} is accessed past the end of shared memory", to_string(access.operand)));
      continue;
    }
    Chunk& chunk = chunks_[address / 16];
    step_.operand = access.operand;
    if (reads)
      read(chunk);
    else
      write(chunk, access.kind == SharedAccess::Kind::fill_async);
  }
}

bool HazardChecker::complete(const Write& w, Completion& when) const {
  if (w.group < 0) {
    when = {w.epoch, w.sync};
    return true;
  }
  const auto& completed = warps_[static_cast<std::size_t>(w.warp)].completed;
  if (static_cast<std::size_t>(w.group) >= completed.size()) return false;
  when = completed[static_cast<std::size_t>(w.group)];
  return true;
}

std::string HazardChecker::name(Operand x, int tile) const {
  return x == Operand::k || x == Operand::v ? fmt::format("{} tile {}", to_string(x), tile) : to_string(x);
}

void HazardChecker::read(Chunk& chunk) {
  if (chunk.readers_epoch != epoch_) chunk.readers = 0, chunk.readers_epoch = epoch_;
  chunk.readers |= 1u << warp_;
  const Write& w = chunk.last;
  const bool tiled = step_.operand == Operand::k || step_.operand == Operand::v;
  const std::string wanted = w.warp >= 0 && w.operand == step_.operand && (!tiled || w.tile == step_.tile)
                                 ? std::string{}
                                 : name(step_.operand, step_.tile);
  if (w.warp < 0) return report(wanted + " is read where nothing was written");
  Completion when{};
  const bool done = complete(w, when);
  const bool ordered =
      done && (w.warp == warp_ ? when.sync < warps_[static_cast<std::size_t>(warp_)].sync : when.epoch < epoch_);
  if (!wanted.empty() && !ordered)
    return report(fmt::format("{} is overwritten by {} while it is still read", wanted, name(w.operand, w.tile)));
  if (!wanted.empty()) return report(fmt::format("{} is read and finds {}", wanted, name(w.operand, w.tile)));
  if (!done) return report(fmt::format("{} is read before its copy was waited for", name(w.operand, w.tile)));
  if (!ordered)
    report(fmt::format("{} is read without a barrier after its {}", name(w.operand, w.tile),
                       w.group < 0 ? "write" : "wait"));
}

void HazardChecker::write(Chunk& chunk, bool async) {
  const Warp& warp = warps_[static_cast<std::size_t>(warp_)];
  const Write now{warp_, async ? warp.committed : -1, epoch_, warp.sync, step_.operand, step_.tile};
  if (chunk.readers_epoch == epoch_ && (chunk.readers & ~(1u << warp_)) != 0)
    report(fmt::format("{} is written in the epoch of another warp's read: no barrier before its slot is filled again",
                       name(now.operand, now.tile)));
  const Write& w = chunk.last;
  if (w.warp >= 0) {
    Completion when{};
    const bool done = complete(w, when);
    const bool same_step = w.warp == warp_ && w.operand == now.operand && w.tile == now.tile && w.group == now.group;
    if (!same_step && done && w.warp != warp_ && when.epoch >= epoch_)
      report(fmt::format("{} is written over {} without a barrier between", name(now.operand, now.tile),
                         name(w.operand, w.tile)));
    if (!same_step && !done)
      report(fmt::format("{} is written over {}, whose copy is in flight", name(now.operand, now.tile),
                         name(w.operand, w.tile)));
  }
  chunk.last = now;
}

std::vector<Hazard> HazardChecker::result() const {
  std::vector<Hazard> hazards;
  for (const auto& [what, count] : found_) hazards.push_back({what, count});
  return hazards;
}

}  // namespace attest
