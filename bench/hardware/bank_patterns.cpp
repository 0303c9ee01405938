#include "bank_patterns.h"

#include <random>

namespace attest::hardware {
namespace {

template <class Address>
LaneAddresses lanes_of(Address shared) {
  LaneAddresses lanes{};
  for (int lane = 0; lane < 32; ++lane) lanes.shared[lane] = static_cast<std::uint32_t>(shared(lane));
  return lanes;
}
template <class Shared, class Global>
LaneAddresses lanes_of(Shared shared, Global global) {
  LaneAddresses lanes = lanes_of(shared);
  for (int lane = 0; lane < 32; ++lane) lanes.global[lane] = static_cast<std::uint32_t>(global(lane));
  return lanes;
}

/// A 16-byte chunk of a tile whose rows are `row_bytes` long, swizzled within groups of 8 chunks or fewer.
std::uint32_t swizzled(int row, int chunk, int row_bytes) {
  const int chunks = row_bytes / 16, group = chunks % 8 == 0 ? 8 : chunks % 4 == 0 ? 4 : chunks % 2 == 0 ? 2 : 1;
  return static_cast<std::uint32_t>(row * row_bytes + ((chunk ^ row % group) * 16));
}

class Patterns {
 public:
  void add(const char* group, const std::string& instruction, const std::string& name, const LaneAddresses& lanes) {
    all.push_back({group, instruction, name, lanes});
  }

  /// Loads and stores of `bytes` a lane.
  void words(const std::string& of, int bytes) {
    const std::string instruction = of + "." + std::to_string(8 * bytes);
    for (int stride = 1; stride <= 33; ++stride)
      add("full", instruction, "stride " + std::to_string(stride), lanes_of([=](int l) { return l * stride * bytes; }));
    add("full", instruction, "broadcast", lanes_of([](int) { return 64; }));
    add("full", instruction, "two words", lanes_of([=](int l) { return l % 2 * 1024 + 16; }));
    add("full", instruction, "two words, halves", lanes_of([=](int l) { return l / 16 * 1024 + 16; }));
    add("full", instruction, "pairs alike", lanes_of([=](int l) { return l / 2 * bytes; }));
    add("full", instruction, "quads alike, stride 32", lanes_of([=](int l) { return l / 4 * 128; }));
    add("full", instruction, "halves alike", lanes_of([=](int l) { return l % 16 * bytes; }));
    add("full", instruction, "halves a line apart", lanes_of([=](int l) { return l % 16 * bytes + l / 16 * 4096; }));
    add("full", instruction, "backwards", lanes_of([=](int l) { return (31 - l) * bytes; }));
    add("full", instruction, "xor", lanes_of([=](int l) { return l * 128 + (l * bytes & 127); }));
    add("full", instruction, "accumulators, 128-byte rows",
        lanes_of([=](int l) { return l / 4 * 128 + l % 4 * bytes; }));
    add("full", instruction, "accumulators, swizzled",
        lanes_of([=](int l) { return swizzled(l / 4, 0, 128) + static_cast<std::uint32_t>(l % 4 * bytes % 16); }));
    for (int i = 0; i < 6; ++i)
      add("full", instruction, "random " + std::to_string(i),
          lanes_of([&](int) { return random() % (i < 3 ? 16384U : 512U) / bytes * bytes; }));
    for (const std::uint32_t mask : {~0u, 1u, 0xffffu, 0x55555555u, 0xff00ff00u, 0x80000001u}) {
      LaneAddresses lanes = lanes_of([=](int l) { return l * 4 * bytes; });
      lanes.active = mask;
      add("predicated", "@p " + instruction, "stride 4", lanes);
    }
  }

  void matrices(const std::string& of, int count) {
    for (const char* const trans : {"", ".trans"}) {
      const std::string instruction = of + ".x" + std::to_string(count) + trans;
      const auto add_rows = [&](const std::string& name, auto address) {
        LaneAddresses lanes = lanes_of([&](int l) { return address(l % (8 * count)); });
        lanes.active = count == 4 ? ~0u : (1u << 8 * count) - 1;
        add("full", instruction, name, lanes);
      };
      for (int stride = 1; stride <= (count == 4 ? 33 : 9); ++stride)
        add_rows("stride " + std::to_string(stride), [=](int l) { return l * stride * 16; });
      for (const int row_bytes : {64, 128, 160, 192, 256, 384, 512})
        add_rows("swizzled rows of " + std::to_string(row_bytes),
                 [=](int l) { return swizzled(l % 16, l / 16, row_bytes); });
      add_rows("broadcast", [](int) { return 256; });
      add_rows("two rows", [](int l) { return l % 2 * 2048; });
      for (int i = 0; i < 4; ++i)
        add_rows("random " + std::to_string(i), [&](int) { return random() % 16384U / 16 * 16; });
    }
  }

  /// Copies of 16 bytes: `chunks` of a row by as many lanes, rows `stride` bytes apart from `first` on.
  LaneAddresses rows(int chunks, int stride, int first, bool swizzle, int bytes = 16) {
    return lanes_of(
        [=](int l) {
          const int row = l / chunks, byte = l % chunks * bytes, row_bytes = std::max(64, chunks * bytes);
          return swizzle ? swizzled(row, byte / 16, row_bytes) + static_cast<std::uint32_t>(byte % 16)
                         : static_cast<std::uint32_t>(row * row_bytes + byte);
        },
        [=](int l) { return first + l / chunks * stride + l % chunks * bytes; });
  }

  void whole_copies() {
    const auto line = [](int l) { return l * 16; };
    for (int stride = 1; stride <= 33; ++stride)
      add("full", "cp.async.16", "stride " + std::to_string(stride),
          lanes_of([=](int l) { return l * stride * 16; }, line));
    for (const int chunks : {4, 8, 16, 32})
      for (const bool swizzle : {false, true})
        for (const int stride : {1024, 4096 + 256, 512 + 64, 8192 + 32})
          add("full", "cp.async.16",
              std::to_string(chunks) + " chunks a row, " + std::to_string(stride) + " apart" +
                  (swizzle ? ", swizzled" : ""),
              rows(chunks, stride, 0, swizzle));
    add("full", "cp.async.16", "pairs of rows 96 bytes long",
        lanes_of([](int l) { return l * 16; }, [](int l) { return l / 6 * 96 * 24 + l % 6 * 16; }));
    add("full", "cp.async.16", "halves of sectors exchanged", lanes_of([](int l) { return (l ^ 1) * 16; }, line));
    for (int i = 0; i < 4; ++i) {
      LaneAddresses lanes = rows(8, 2304, 0, false);
      for (std::uint32_t& address : lanes.shared) address = random() % 16384U / 16 * 16;
      add("full", "cp.async.16", "random places " + std::to_string(i), lanes);
    }
  }

  /// How lanes come to share a sector.
  void sectors() {
    const auto line = [](int l) { return l * 16; };
    const auto other = [this](const char* name, auto shared, auto global) {
      add("sectors", "cp.async.16", name, lanes_of(shared, global));
    };
    const auto crossed = [](int l) { return l % 16 * 2 + l / 16; };  // a sector's halves by lanes 16 apart
    other("from half a sector on", line, [](int l) { return l * 16 + 16; });
    other(
        "from half a sector on to half a sector on", [](int l) { return l * 16 + 16; },
        [](int l) { return l * 16 + 16; });
    other(
        "from half a sector on, exchanged", [](int l) { return (l ^ 1) * 16; }, [](int l) { return l * 16 + 16; });
    other(
        "to every other chunk", [](int l) { return l * 32; }, line);
    other(
        "turned by a chunk", [](int l) { return (l + 1) % 32 * 16; }, line);
    other(
        "halves by lanes 16 apart", [=](int l) { return crossed(l) * 16; }, [=](int l) { return crossed(l) * 16; });
    other("halves by lanes 16 apart, to where lanes follow", line, [=](int l) { return crossed(l) * 16; });
    other(
        "lanes follow, to where halves lie 16 apart", [=](int l) { return crossed(l) * 16; }, line);
    other(
        "halves by lanes 2 apart", [](int l) { return (l / 4 * 4 + l % 2 * 2 + l / 2 % 2) * 16; },
        [](int l) { return (l / 4 * 4 + l % 2 * 2 + l / 2 % 2) * 16; });
    other(
        "backwards", [](int l) { return (31 - l) * 16; }, [](int l) { return (31 - l) * 16; });
    other("backwards to forwards", line, [](int l) { return (31 - l) * 16; });
    other("pairs read the same", line, [](int l) { return l / 2 * 16; });
    other("pairs read the same of each sector", line, [](int l) { return l / 2 * 32; });
    other("all read the same", line, [](int) { return 64; });
    for (const int apart : {2, 3, 4, 5, 7, 8, 9, 16, 33})
      add("sectors", "cp.async.16", "chunks " + std::to_string(apart) + " apart",
          lanes_of(line, [=](int l) { return l * apart * 16; }));
    for (const int first : {16, 32, 48, 64, 80, 96, 112})
      for (const int chunks : {4, 8, 16, 32})
        for (const bool swizzle : {false, true})
          add("sectors", "cp.async.16",
              std::to_string(chunks) + " chunks a row from byte " + std::to_string(first) +
                  (swizzle ? ", swizzled" : ""),
              rows(chunks, 3840, first, swizzle));
  }

  void partial_copies() {
    for (const char* const instruction :
         {"cp.async.16 or zero", "@p cp.async.16 or zero", "four cp.async.16 or zero", "four @p cp.async.16 or zero"})
      for (const int first : {0, 16})
        for (const auto& [chunks, there] :
             {std::pair{4, 4}, {4, 1}, {4, 0}, {8, 8}, {8, 7}, {16, 16}, {16, 15}, {16, 9}}) {
          LaneAddresses lanes = rows(chunks, 3840, first, true);
          lanes.present = 0;
          for (int l = 0; l < 32; ++l) lanes.present |= l % chunks < there ? 1u << l : 0;
          add("partial", instruction,
              std::to_string(there) + " of " + std::to_string(chunks) + " chunks a row from byte " +
                  std::to_string(first),
              lanes);
        }
    for (const char* const instruction :
         {"@p cp.async.16", "@p cp.async.16 or zero", "four @p cp.async.16", "four @p cp.async.16 or zero"})
      for (const std::uint32_t mask : {~0u, 0u, 1u, 0xffffu, 0x55555555u, 0x0fffffffu}) {
        LaneAddresses lanes = rows(8, 4096, 0, true);
        lanes.active = mask;
        add("predicated", instruction, "8 chunks a row", lanes);
      }
    for (const char* const instruction : {"cp.async.16 or zero", "four cp.async.16 or zero"})
      for (const std::uint32_t mask : {1u, 0xffffu, 0x55555555u, 0x0fffffffu}) {
        LaneAddresses lanes = rows(8, 4096, 0, true);
        lanes.present = mask;
        add("partial", instruction, "8 chunks a row", lanes);
      }
    // a warp's part of a tile whose rows are as long: some columns of it exist, of all rows or of the first ones
    for (const char* const instruction : {"cp.async.16 or zero", "four cp.async.16 or zero"})
      for (const auto& [row_bytes, chunks] : {std::pair{128, 8}, {192, 4}, {256, 16}, {256, 4}, {384, 8}, {512, 32}})
        for (const int first : {0, 16})
          for (const int columns : {chunks, chunks - 1, chunks / 2, 1})
            for (const int rows_there : {32 / chunks, 1, 0}) {
              LaneAddresses lanes =
                  lanes_of([=, row_bytes = row_bytes,
                            chunks = chunks](int l) { return swizzled(l / chunks, l % chunks, row_bytes); },
                           [=, chunks = chunks](int l) { return first + l / chunks * 3840 + l % chunks * 16; });
              lanes.present = 0;
              for (int l = 0; l < 32; ++l)
                lanes.present |= l % chunks < columns && l / chunks < rows_there ? 1u << l : 0;
              add("partial", instruction,
                  std::to_string(columns) + " of " + std::to_string(chunks) + " chunks of " +
                      std::to_string(rows_there) + " rows from byte " + std::to_string(first) + ", to rows of " +
                      std::to_string(row_bytes),
                  lanes);
            }
  }

  void narrow_copies() {
    for (const int bytes : {8, 4}) {
      const std::string instruction = "cp.async." + std::to_string(bytes) + " or zero";
      for (int first = 0; first < 32; first += bytes)
        for (const int lanes_a_row : {8, 16, 32})
          for (const bool swizzle : {false, true})
            add("narrow", instruction,
                std::to_string(lanes_a_row) + " lanes a row from byte " + std::to_string(first) +
                    (swizzle ? ", swizzled" : ""),
                rows(lanes_a_row, 3200, first, swizzle, bytes));
      for (const int stride : {2, 3, 8, 32})
        add("narrow", instruction, "stride " + std::to_string(stride),
            lanes_of([=](int l) { return l * stride * bytes; }, [=](int l) { return l * bytes; }));
    }
  }

  std::vector<BankPattern> all;

 private:
  std::minstd_rand random_{7};
  std::uint32_t random() { return static_cast<std::uint32_t>(random_()); }
};

}  // namespace

std::vector<BankPattern> bank_patterns() {
  Patterns patterns;
  for (const char* const of : {"ld", "st"})
    for (const int bytes : {4, 8, 16}) patterns.words(of, bytes);
  for (const char* const of : {"ldmatrix", "stmatrix"})
    for (const int count : {1, 2, 4}) patterns.matrices(of, count);
  patterns.whole_copies();
  patterns.sectors();
  patterns.partial_copies();
  patterns.narrow_copies();
  return std::move(patterns.all);
}

}  // namespace attest::hardware
