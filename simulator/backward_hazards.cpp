#include "attest/simulator/backward_hazards.h"

#include <fmt/format.h>

#include <array>
#include <set>

namespace attest {
namespace {

using Kind = BackwardStep::Kind;

struct TileName {
  BackwardTile kind{};
  int head = 0, tile = 0;
  friend bool operator==(const TileName&, const TileName&) = default;
};

std::string to_string(const TileName& x) {
  const bool resident = BackwardPlan::is_of_keys(x.kind);
  if (resident) return attest::to_string(x.kind);
  return fmt::format("{} of query tile {}{}", attest::to_string(x.kind), x.tile,
                     x.head == 0 ? "" : fmt::format(", head {}", x.head));
}

class Checker {
 public:
  explicit Checker(const BackwardPlan& plan) : plan_(plan), warps_(static_cast<std::size_t>(plan.num_warps)) {
    for (auto& slots : places_)
      slots.resize(static_cast<std::size_t>(plan.stages), Place(static_cast<std::size_t>(plan.num_warps)));
  }

  std::vector<std::string> run(const BackwardProgram& program) {
    std::vector<std::size_t> next(program.warps.size(), 0);
    bool running = true;
    for (epoch_ = 0; running; ++epoch_) {
      running = false;
      std::size_t met = 0;
      for (std::size_t w = 0; w < program.warps.size(); ++w) {
        const auto& steps = program.warps[w];
        warp_ = static_cast<int>(w);
        while (next[w] < steps.size()) {
          const BackwardStep& step = steps[next[w]++];
          if (step.kind == Kind::barrier) {
            ++met;
            break;
          }
          take(step);
        }
        running |= next[w] < steps.size();
      }
      if (met != 0 && met != program.warps.size()) found_.insert("some warps meet a barrier that others do not");
    }
    return {found_.begin(), found_.end()};
  }

 private:
  struct Part {
    bool written = false;
    TileName name;
    int group = -1;  // of asynchronous copies of the warp; -1: immediate
    int epoch = 0;
    std::uint32_t readers = 0;  // warps that read it in `readers_epoch`
    int readers_epoch = -1;
  };
  using Place = std::vector<Part>;  // by the warp that writes
  struct Warp {
    std::vector<int> completed;  // epoch of the wait that covered a group
    int committed = 0;
  };

  void take(const BackwardStep& s) {
    Warp& warp = warps_[static_cast<std::size_t>(warp_)];
    const auto of_queries = [&](BackwardTile x) { return TileName{x, s.head, s.tile}; };
    const TileName k{BackwardTile::k, 0, 0}, v{BackwardTile::v, 0, 0};
    switch (s.kind) {
      case Kind::commit:
        ++warp.committed;
        return;
      case Kind::wait:
        while (static_cast<int>(warp.completed.size()) < warp.committed - s.slot) warp.completed.push_back(epoch_);
        return;
      case Kind::copy:
        return write(BackwardPlan::is_of_keys(s.operand) ? TileName{s.operand, 0, 0} : of_queries(s.operand), s.slot,
                     true);
      case Kind::scores:
        return read_all(of_queries(BackwardTile::q), s.slot), read_all(k, 0);
      case Kind::probabilities:
        return read_all(of_queries(BackwardTile::lse), s.slot);
      case Kind::dprobabilities:
        return read_all(of_queries(BackwardTile::dout), s.slot), read_all(v, 0);
      case Kind::dscores:
        return read_all(of_queries(BackwardTile::d), s.slot);
      case Kind::put:
        return write(of_queries(BackwardTile::p), 0, false), write(of_queries(BackwardTile::ds), 0, false);
      case Kind::add_dv:
        return read_all(of_queries(BackwardTile::p), 0), read_all(of_queries(BackwardTile::dout), s.slot);
      case Kind::put_dq:
        read(of_queries(BackwardTile::ds), 0, warp_), read_all(k, 0);
        return write(of_queries(BackwardTile::dq), 0, false);
      case Kind::add_dq:
        return read_all(of_queries(BackwardTile::dq), 0);
      case Kind::add_dk:
        return read_all(of_queries(BackwardTile::ds), 0), read_all(of_queries(BackwardTile::q), s.slot);
      case Kind::stage:
        return write({BackwardTile::dk, 0, 0}, 0, false), write({BackwardTile::dv, 0, 0}, 0, false);
      case Kind::store:
        return read_all({s.operand, 0, 0}, 0);
      default:
        return;
    }
  }

  Place& place(BackwardTile x, int slot) {
    return places_[static_cast<std::size_t>(plan_.place_of(x))][static_cast<std::size_t>(slot)];
  }
  /// Whether a part has all been written, and in which epoch that was known.
  bool complete(const Part& part, int writer, int& when) const {
    when = part.epoch;
    if (part.group < 0) return true;
    const auto& completed = warps_[static_cast<std::size_t>(writer)].completed;
    if (static_cast<std::size_t>(part.group) >= completed.size()) return false;
    when = completed[static_cast<std::size_t>(part.group)];
    return true;
  }

  void read_all(const TileName& name, int slot) {
    for (int part = 0; part < plan_.num_warps; ++part) read(name, slot, part);
  }

  void read(const TileName& name, int slot, int writer) {
    Part& part = place(name.kind, slot)[static_cast<std::size_t>(writer)];
    if (part.readers_epoch != epoch_) part.readers = 0, part.readers_epoch = epoch_;
    part.readers |= 1u << warp_;
    if (!part.written) {
      part.name = name;  // what a write in this epoch is too late for
      return report("{} is read where nothing was written", name);
    }
    int when = 0;
    const bool done = complete(part, writer, when), ordered = done && (writer == warp_ || when < epoch_);
    if (part.name != name)
      return report(ordered ? "{} is read and finds {}" : "{} is overwritten by {} while it is still read", name,
                    part.name);
    if (!done) return report("{} is read before its copy was waited for", name);
    if (!ordered)
      report(part.group < 0 ? "{} is read without a barrier after its write"
                            : "{} is read without a barrier after its wait",
             name);
  }

  void write(const TileName& name, int slot, bool async) {
    Place& all = place(name.kind, slot);
    for (int w = 0; w < plan_.num_warps; ++w) {
      Part& part = all[static_cast<std::size_t>(w)];
      const bool alike = part.written && part.name.kind == name.kind;
      if (alike && w != warp_) continue;
      if (part.readers_epoch == epoch_ && (part.readers & ~(1u << warp_)) != 0)
        report("{} is written in the epoch of another warp's read of {}: no barrier before its place is used again",
               name, part.name);
      int when = 0;
      if (part.written && !complete(part, w, when))
        report("{} is written over {}, whose copy is in flight", name, part.name);
      else if (part.written && w != warp_ && when >= epoch_)
        report("{} is written over {} without a barrier between", name, part.name);
      if (!alike && w != warp_) part.written = false;  // gone: this kind of tile lies elsewhere
    }
    Part& mine = all[static_cast<std::size_t>(warp_)];
    mine.written = true;
    mine.name = name;
    mine.group = async ? warps_[static_cast<std::size_t>(warp_)].committed : -1;
    mine.epoch = epoch_;
  }

  template <class... Names>
  void report(const char* what, const Names&... names) {
    found_.insert(fmt::format(fmt::runtime(what), to_string(names)...));
  }

  const BackwardPlan& plan_;
  std::array<std::vector<Place>, 11> places_;  // by BackwardTile
  std::vector<Warp> warps_;
  std::set<std::string> found_;
  int warp_ = 0, epoch_ = 0;
};

}  // namespace

std::vector<std::string> find_backward_hazards(const BackwardPlan& plan, const BackwardProgram& program) {
  return Checker(plan).run(program);
}

}  // namespace attest
