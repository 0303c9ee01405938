#include "shared_place.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "attest/gpu/staged_ranges.h"

namespace attest {
namespace {

class SharedPlace : public RunPlace {
 public:
  explicit SharedPlace(std::shared_ptr<PythonProcess> process) : process_(std::move(process)) {}

  std::int64_t most_workspace_bytes() const override { return 0; }  // Python allocates by itself

  RunReport run(std::span<const MemoryRange> memory, std::int64_t /*workspace_bytes*/,
                const std::function<void(const PlaceOfRun&)>& call) override {
    std::byte* const arena = share(memory);
    call(there());
    RunReport report;
    if (const std::int64_t changed = ranges_.copy_out(arena); changed > 0)
      report.hazards.push_back(fmt::format("{} bytes of memory changed beyond the tensors' margins", changed));
    return report;
  }

  std::vector<double> device_seconds(std::span<const MemoryRange> memory, std::int64_t /*workspace_bytes*/,
                                     const std::function<void(const PlaceOfRun&)>& call, int repeats) override {
    if (repeats > most_repeats)
      throw std::runtime_error(fmt::format("repeats: {} are above {}", repeats, most_repeats));
    share(memory);
    Control& control = process_->control();
    const struct Asked {  // whatever call() throws
      explicit Asked(Control& of, int times) : control(of) { control.repeats = times; }
      ~Asked() { control.repeats = 0; }
      Asked(const Asked&) = delete;
      Asked& operator=(const Asked&) = delete;
      Control& control;
    } asked(control, repeats);
    call(there());
    return {control.seconds, control.seconds + repeats};
  }

 private:
  std::byte* share(std::span<const MemoryRange> memory) {
    const std::size_t bytes = ranges_.lay_out(memory);
    if (bytes > shared_bytes - arena_begin)
      throw std::runtime_error(
          fmt::format("memory: {} bytes are above {}, what is shared with Python", bytes, shared_bytes - arena_begin));
    std::byte* const arena = process_->memory() + arena_begin;
    ranges_.copy_in(arena);
    process_->control().arena_begin = arena_begin;
    process_->control().arena_bytes = static_cast<std::int64_t>(bytes);
    return arena;
  }

  PlaceOfRun there() {
    return {
        [this](const void* host) { return host ? process_->in_child(arena_begin + ranges_.offset_of(host)) : nullptr; },
        nullptr, nullptr};
  }

  std::shared_ptr<PythonProcess> process_;
  StagedRanges ranges_;
};

}  // namespace

std::unique_ptr<RunPlace> make_shared_place(std::shared_ptr<PythonProcess> process) {
  return std::make_unique<SharedPlace>(std::move(process));
}

}  // namespace attest
