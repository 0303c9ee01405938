// L1, row by row: a warp accesses rows of 512 bytes, parts of them or lines, one after the other, and says of each
// whether L1 had it. CSV to standard output.
//
//     l1_rows > docs/results/h200-l1/rows.csv
//
// A row of four lines has a line in each bank of L1, so that all banks do alike. Most sequences begin with accesses at
// random of a row more than L1 has room for: where it evicts one line at a time, the one that is not there says
// what all others are. Rows 2^16 and more apart are pages of their own in a reserved range of addresses, whose first
// one is a multiple of its size; `alias` has one page in two places there.
#include <cuda.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "attest/hardware/device.h"

namespace attest::hardware {
namespace {

constexpr std::int64_t kBytes = std::int64_t{64} << 20, kRowBytes = 512, kLineBytes = 128;
constexpr int kSmemReserved = 1024;     // of a CTA, by the driver
constexpr int kHit = 290, kMiss = 340;  // cycles at most and at least, of each kind of access
constexpr unsigned kPrefixRows = 43;    // one more than 28 KiB of L1 hold
constexpr int kPrefix = 2200, kAccesses = 800;
constexpr std::uint32_t kNever = 12345;            // the buffer holds zeros
constexpr unsigned kNearBits = 16, kFarBits = 29;  // of rows that one page has not; a line's number has 32

enum class Kind : std::uint32_t {
  read,
  copy_twice,
  copy,
  write,
  read_first,  // half of each line's sectors
  read_second,
  copy_first,
  copy_second,
  copy_front,  // three of them
  copy_back,
  copy_halves,  // one after the other
  copy_unwaited,
  read_line,  // one of a row's four
  read_last   // the last use: LDG.LU
};
constexpr std::string_view kLetters = "rdcwfsabxyholu";
struct Access {
  Kind kind;
  std::uint32_t row;  // of read_line the line
};

__device__ std::uint32_t read(const std::uint8_t* at) {
  uint4 x;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(at)
               : "memory");
  return x.x ^ x.y ^ x.z ^ x.w;
}

__device__ std::uint32_t read_last(const std::uint8_t* at) {
  uint4 x;
  asm volatile("ld.global.lu.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(at)
               : "memory");
  return x.x ^ x.y ^ x.z ^ x.w;
}

__device__ void copy(std::uint32_t to, const std::uint8_t* at) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(at) : "memory");
}

/// Shared memory holds the list and, at its end, where copies go.
__global__ void __launch_bounds__(32, 1)
    play(std::uint8_t* buffer, const Access* accesses, int count, std::uint16_t* cycles) {
  extern __shared__ __align__(16) std::uint8_t smem[];
  auto* const list = reinterpret_cast<Access*>(smem);
  auto* const took = reinterpret_cast<std::uint16_t*>(list + count);
  const auto end = static_cast<std::uint32_t>(__cvta_generic_to_shared(took + count));
  const std::uint32_t to = (end + 15) / 16 * 16 + 16 * threadIdx.x;
  for (int i = threadIdx.x; i < count; i += 32) {
    std::uint32_t kind, row;  // past L1
    asm volatile("ld.global.cv.v2.u32 {%0, %1}, [%2];" : "=r"(kind), "=r"(row) : "l"(accesses + i));
    list[i] = {static_cast<Kind>(kind), row};
  }
  __syncwarp();
  std::uint32_t sum = 0;
  for (int i = 0; i < count; ++i) {
    const Access a = list[i];
    std::uint8_t* at = buffer + kRowBytes * a.row + 16 * threadIdx.x;
    // of parts of lines two or three of each one's four sectors, which lanes of the others take too
    if (a.kind >= Kind::read_first && a.kind <= Kind::copy_halves) {
      const int chunk = threadIdx.x % 8;
      const bool halves = a.kind != Kind::copy_front && a.kind != Kind::copy_back;
      const bool back = a.kind == Kind::read_second || a.kind == Kind::copy_second || a.kind == Kind::copy_back;
      at += 16 * ((halves ? chunk % 4 + (back ? 4 : 0) : chunk % 6 + (back ? 2 : 0)) - chunk);
    }
    if (a.kind == Kind::read_line) at = buffer + kLineBytes * a.row + 16 * (threadIdx.x % 8);
    __syncwarp();
    if (a.kind != Kind::copy_unwaited) asm volatile("cp.async.wait_all;" ::: "memory");
    const long long began = clock64();
    if (a.kind == Kind::read || a.kind == Kind::read_first || a.kind == Kind::read_second || a.kind == Kind::read_line)
      sum += read(at);
    if (a.kind == Kind::read_last) sum += read_last(at);
    if (a.kind == Kind::copy || a.kind == Kind::copy_twice ||
        (a.kind >= Kind::copy_first && a.kind <= Kind::copy_unwaited)) {
      // copies, for ptxas makes one of two reads of one address
      copy(to, at);
      if (a.kind == Kind::copy_halves) copy(to + kRowBytes, at + 64);  // while the first is on its way
      if (a.kind == Kind::copy_twice) copy(to + kRowBytes, at);
      if (a.kind != Kind::copy_unwaited) asm volatile("cp.async.wait_all;" ::: "memory");
    }
    if (a.kind == Kind::write) asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(at), "r"(0) : "memory");
    if (sum == kNever) __trap();  // a branch on what is read keeps the clock behind it
    if (threadIdx.x == 0) took[i] = static_cast<std::uint16_t>(min(clock64() - began, 65535ll));
    while (a.kind == Kind::write && clock64() - began < 700) {
    }
    __syncwarp();
  }
  for (int i = threadIdx.x; i < count; i += 32) cycles[i] = took[i];
}

using Accesses = std::vector<Access>;

/// Pages at the begin of a range of virtual addresses and 2^bit rows behind it.
class FarPages {
 public:
  FarPages() {
    check(cudaFree(nullptr));  // opens the context
    prop_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    call<decltype(&cuMemAddressReserve)>("cuMemAddressReserve", &base_, kRange, kRange, 0, 0);
    if (base_ % kRange != 0) throw std::runtime_error("the range of addresses is not a multiple of its size");
    const auto first = page(0);
    for (unsigned bit = kNearBits; bit < kFarBits; ++bit) page(kRowBytes << bit);
    map(kRowBytes << kFarBits, first);
  }
  std::uint8_t* data() const { return reinterpret_cast<std::uint8_t*>(base_); }

 private:
  static constexpr std::size_t kRange = std::size_t{kRowBytes} << (kFarBits + 1), kPage = 2 << 20;
  template <class F, class... Arguments>
  static void call(const char* name, Arguments... arguments) {
    void* function = nullptr;
    check(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault));
    if (const CUresult result = reinterpret_cast<F>(function)(arguments...); result != CUDA_SUCCESS)
      throw std::runtime_error(std::string(name) + ": the driver's error " + std::to_string(result));
  }
  CUmemGenericAllocationHandle page(std::size_t at) const {
    CUmemGenericAllocationHandle handle = 0;
    call<decltype(&cuMemCreate)>("cuMemCreate", &handle, kPage, &prop_, 0);
    map(at, handle);
    check(cudaMemset(data() + at, 0, kPage));
    return handle;
  }
  void map(std::size_t at, CUmemGenericAllocationHandle handle) const {
    call<decltype(&cuMemMap)>("cuMemMap", base_ + at, kPage, 0, handle, 0);
    const CUmemAccessDesc access{prop_.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    call<decltype(&cuMemSetAccess)>("cuMemSetAccess", base_ + at, kPage, &access, 1);
  }

  CUmemAllocationProp prop_{};
  CUdeviceptr base_ = 0;
};

class L1 {
 public:
  /// Prints a row for the sequence: of each access h or m, - where it is not known (a write, a copy that nobody waits
  /// for). `far`: in the range of pages that lie far apart.
  void play(const std::string& name, int smem_kib, const Accesses& accesses, bool far = false) const {
    const int smem = 1024 * smem_kib - kSmemReserved;
    check(cudaFuncSetAttribute(hardware::play, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
    const DeviceArray<Access> list(accesses);
    const DeviceArray<std::uint16_t> cycles(accesses.size());
    hardware::play<<<1, 32, smem>>>(far ? far_.data() : buffer_.data(), list.data(), static_cast<int>(accesses.size()),
                                    cycles.data());
    check(cudaGetLastError());
    const std::vector<std::uint16_t> took = cycles.download();
    std::printf("%s,%d,", name.c_str(), smem_kib);
    for (const Access& a : accesses) std::printf("%c%u ", kLetters[static_cast<int>(a.kind)], a.row);
    std::printf(",");
    for (std::size_t i = 0; i < took.size(); ++i) {
      const bool unknown = accesses[i].kind == Kind::write || accesses[i].kind == Kind::copy_unwaited;
      if (!unknown && took[i] > kHit && took[i] < kMiss)
        throw std::runtime_error(name + ": " + std::to_string(took[i]) + " cycles are neither a hit nor a miss");
      std::printf("%c", unknown ? '-' : took[i] <= kHit ? 'h' : 'm');
    }
    std::printf("\n");
  }

 private:
  DeviceArray<std::uint8_t> buffer_{kBytes};
  FarPages far_;
};

using Random = std::mt19937;

Accesses prefix(Random& random) {
  Accesses list;
  for (int i = 0; i < kPrefix; ++i) list.push_back({Kind::read, static_cast<std::uint32_t>(random() % kPrefixRows)});
  return list;
}

/// `kinds` and rows at random after a prefix.
Accesses at_random(const std::string& kinds, Random& random, const std::function<std::uint32_t()>& row) {
  Accesses list = prefix(random);
  for (int i = 0; i < kAccesses; ++i) {
    const char kind = kinds[random() % kinds.size()];
    list.push_back({static_cast<Kind>(kLetters.find(kind)), row()});
  }
  return list;
}

void measure() {
  const L1 l1;
  Random random(1);
  std::printf("sequence,smem_kib,accesses,held\n");
  for (const unsigned rows : {43U, 50U, 60U, 64U})
    l1.play("random" + std::to_string(rows), 228, at_random("r", random, [&] { return random() % rows; }));
  // what each bit of a row's number does: 30 rows and those that differ from them in it
  for (unsigned bit = 6; bit <= 16; ++bit)
    l1.play("bit" + std::to_string(bit), 228,
            at_random("r", random, [&] { return (random() % 30) | (random() % 2) << bit; }));
  // kinds of accesses, of rows that are two to a set
  for (const char* kinds : {"r", "d", "rd", "cd", "c", "rc", "rw"})
    l1.play(std::string("kinds_") + kinds, 228,
            at_random(kinds, random, [&] { return (random() % 30) | (random() % 2) << 14; }));
  // rows of one set: what a bit changes of the set, bits of the first 64 rows change back
  for (unsigned rows = 2; rows <= 8; ++rows) {
    Accesses list;
    for (unsigned i = 0; i < 2 * rows; ++i) {
      std::uint32_t row = 0;
      constexpr std::array<std::uint32_t, 3> same_set = {1U << 7 | 28, 1U << 11 | 14, 1U << 14 | 59};
      for (unsigned bit = 0; bit < same_set.size(); ++bit)
        if ((i % rows >> bit & 1) != 0) row ^= same_set[bit];
      list.push_back({Kind::read, row});
    }
    l1.play("one_set" + std::to_string(rows), 164, list);
  }
  // how many rows L1 has room for, beside how much shared memory; of less two CTAs would fit an SM
  for (const int smem_kib : {228, 196, 164, 132})
    for (const unsigned more : {1U, 2U}) {
      const unsigned rows = static_cast<unsigned>(256 - smem_kib) * 2 * (2 + more) / 2;
      Accesses list;
      for (int i = 0; i < 6000; ++i) list.push_back({Kind::read, static_cast<std::uint32_t>(random() % rows)});
      l1.play("room" + std::to_string(rows), smem_kib, list);
    }
  // parts of lines: whether an access to other sectors counts as a hit, also on their way, and what a part takes of
  // L1's room
  for (const char* kinds : {"f", "fs", "fr", "a", "ab", "abr", "xy", "h", "rh", "ch"})
    l1.play(std::string("kinds_") + kinds, 228,
            at_random(kinds, random, [&] { return (random() % 30) | (random() % 2) << 14; }));
  for (const char* kinds : {"f", "fs", "ab", "xy"})
    l1.play(std::string("random50_") + kinds, 228, at_random(kinds, random, [&] { return random() % 50; }));
  // which bank a row's lines have: of 30 rows those of one bank, and as many of rows that differ in a bit, of another
  // bank or the same, which has room for 42
  constexpr std::array<std::uint32_t, 5> banks = {1, 2, 3, 1, 2};
  const auto bank_of = [&](unsigned bit) {
    for (std::uint32_t other = 0; other < 4; ++other) {
      Accesses list;
      for (int i = 0; i < 500; ++i) {
        const auto row = static_cast<std::uint32_t>(random() % 30), far = static_cast<std::uint32_t>(random() % 2);
        std::uint32_t line = far * other;
        for (unsigned b = 0; b < banks.size(); ++b) line ^= (row >> b & 1) * banks[b];
        list.push_back({Kind::read_line, (row | far << bit) * 4 + line});
      }
      l1.play("bank" + std::to_string(bit) + "_" + std::to_string(other), 228, list, bit >= kNearBits);
    }
  };
  for (unsigned bit = 5; bit <= 15; ++bit) bank_of(bit);
  // copies that are on their way together, then eight reads
  for (const int together : {4, 8, 16, 32, 48}) {
    Accesses list = prefix(random);
    for (int i = 0; i < kAccesses; ++i) {
      const Kind kind = i % (together + 8) < together ? Kind::copy_unwaited : Kind::read;
      list.push_back({kind, static_cast<std::uint32_t>(random() % 60)});
    }
    l1.play("burst" + std::to_string(together), 228, list);
  }
  // last uses, beside reads and of what was written
  for (const char* kinds : {"ru", "wu", "rwu"}) {
    l1.play(std::string("kinds_") + kinds, 228,
            at_random(kinds, random, [&] { return (random() % 30) | (random() % 2) << 14; }));
    l1.play(std::string("random50_") + kinds, 228, at_random(kinds, random, [&] { return random() % 50; }));
  }
  // what bits do that pages have
  for (unsigned bit = kNearBits; bit <= kFarBits; ++bit) {
    l1.play(bit == kFarBits ? "alias" : "far_bit" + std::to_string(bit), 228,
            at_random("r", random, [&] { return (random() % 30) | (random() % 2) << bit; }), true);
    bank_of(bit);
  }
}

}  // namespace
}  // namespace attest::hardware

int main() { return attest::hardware::run("l1_rows", &attest::hardware::measure); }
