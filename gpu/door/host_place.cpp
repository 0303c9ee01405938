#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "attest/gpu/run_place.h"
#include "attest/gpu/staged_ranges.h"

namespace attest {
namespace {

constexpr std::size_t zone_bytes = StagedRanges::zone_bytes;  // checked, on either side of a workspace

void (*listener)() = nullptr;  // of batches

struct Free {
  void operator()(std::byte* p) const { std::free(p); }
};

class HostPlace : public RunPlace {
 public:
  std::int64_t most_workspace_bytes() const override { return ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE); }

  RunReport run(std::span<const MemoryRange> /*memory*/, std::int64_t workspace_bytes,
                const std::function<void(const PlaceOfRun&)>& call) override {
    PlaceOfRun place{[](const void* pointer) { return const_cast<void*>(pointer); }, nullptr, nullptr};
    if (workspace_bytes > 0) place.workspace = lay_out(static_cast<std::size_t>(workspace_bytes));
    call(place);
    RunReport report;
    if (workspace_bytes > 0)
      if (const std::int64_t changed = changed_around(static_cast<std::size_t>(workspace_bytes)); changed > 0)
        report.hazards.push_back(fmt::format("{} bytes changed around the workspace", changed));
    return report;
  }

 private:
  void* lay_out(std::size_t bytes) {
    const std::size_t all = StagedRanges::round_up(bytes + 2 * zone_bytes);
    if (all > capacity_) {
      memory_.reset(static_cast<std::byte*>(std::aligned_alloc(StagedRanges::alignment, all)));
      capacity_ = memory_ ? all : 0;
      if (!memory_) throw std::runtime_error(fmt::format("workspace: {} bytes cannot be had", bytes));
    }
    std::memset(memory_.get(), StagedRanges::poison, all);
    return memory_.get() + zone_bytes;
  }

  std::int64_t changed_around(std::size_t bytes) const {
    const std::byte* const after = memory_.get() + zone_bytes + bytes;
    return StagedRanges::count_unpoisoned(memory_.get(), memory_.get() + zone_bytes) +
           StagedRanges::count_unpoisoned(after, after + zone_bytes);
  }

  std::unique_ptr<std::byte, Free> memory_;
  std::size_t capacity_ = 0;
};

}  // namespace

void hear_of_batches(void (*new_listener)()) { listener = new_listener; }

void tell_end_of_batch() {
  if (listener) listener();
}

std::unique_ptr<RunPlace> make_host_place() { return std::make_unique<HostPlace>(); }

}  // namespace attest
