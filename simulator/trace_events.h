// Events in the JSON format of Chrome's trace viewer, collected in any order.
#pragma once
#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attest {

/// Whole nanoseconds, so that slices nest exactly.
using TraceNs = std::int64_t;

class TraceEvents {
 public:
  using Json = nlohmann::ordered_json;

  /// Processes stand in the order in which they are named.
  void name_process(int pid, std::string_view name) {
    metadata("process_name", pid, 0, {{"name", name}});
    metadata("process_sort_index", pid, 0, {{"sort_index", processes_++}});
  }
  void name_thread(int pid, int tid, std::string_view name) {
    metadata("thread_name", pid, tid, {{"name", name}});
    metadata("thread_sort_index", pid, tid, {{"sort_index", tid}});
  }
  void slice(int pid, int tid, std::string_view name, TraceNs begin, TraceNs end, const Json& args = Json::object()) {
    Json event = {{"ph", "X"}, {"name", name}, {"pid", pid}, {"tid", tid}, {"ts", us(begin)}, {"dur", us(end - begin)}};
    if (!args.empty()) event["args"] = args;
    timed_.push_back({begin, end - begin, std::move(event)});
  }
  void counter(int pid, std::string_view name, std::string_view unit, TraceNs at, double value) {
    timed_.push_back({at,
                      0,
                      {{"ph", "C"},
                       {"name", name},
                       {"pid", pid},
                       {"tid", 0},
                       {"ts", us(at)},
                       {"args", {{std::string(unit), value}}}}});
  }

  /// Ascending; of what begins together the longest first, so that a slice stands before what it holds.
  Json take() {
    std::stable_sort(timed_.begin(), timed_.end(), [](const Timed& a, const Timed& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.duration > b.duration;
    });
    for (Timed& t : timed_) all_.push_back(std::move(t.event));
    return std::move(all_);
  }

 private:
  struct Timed {
    TraceNs begin, duration;
    Json event;
  };
  static double us(TraceNs ns) { return static_cast<double>(ns) / 1000; }
  void metadata(std::string_view what, int pid, int tid, const Json& args) {
    all_.push_back({{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", args}});
  }
  int processes_ = 0;
  Json all_ = Json::array();
  std::vector<Timed> timed_;
};

}  // namespace attest
