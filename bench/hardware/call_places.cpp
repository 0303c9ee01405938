// A counter of calls whose buffer lies at several places, three times at each: CSV to standard output.
//
//     call_places METRIC KERNEL CASE [KERNEL CASE...]        a case as canonical JSON
//
// Between two places 96 to 288 MiB are allocated and kept.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <list>

#include "attest/counters/counter_reader.h"
#include "attest/counters/device_call.h"
#include "attest/fuzz/device_forwards.h"

int main(int argc, char** argv) try {
  using namespace attest;
  if (argc < 4 || argc % 2 != 0)
    return std::fprintf(stderr, "usage: call_places METRIC KERNEL CASE [KERNEL CASE...]\n"), 2;
  constexpr int places = 8, times = 3;
  std::list<DeviceMemory> between;
  std::printf("place,call,kernel,buffer,buffer_bytes,count,%s\n", argv[1]);
  for (int place = 0; place < places; ++place) {
    for (int i = 2; i < argc; i += 2) {
      DeviceMemory memory;
      DeviceCall call(make_device_forward(argv[i]), case_from_json_text(argv[i + 1]), memory);
      CounterReader reader({argv[1]});
      for (int count = 0; count < times; ++count)
        for (const LaunchCounters& launch : reader.read(call, false))
          std::printf("%d,%d,%s,0x%jx,%zu,%d,%.0f\n", place, i / 2 - 1, argv[i],
                      static_cast<std::uintmax_t>(reinterpret_cast<std::uintptr_t>(memory.data())), memory.capacity(),
                      count, launch.values.at(argv[1]));
    }
    between.emplace_back().reserve(static_cast<std::size_t>(place % 3 + 1) * 96 << 20);
  }
} catch (const std::exception& e) {
  return std::fprintf(stderr, "call_places: %s\n", e.what()), 1;
}
