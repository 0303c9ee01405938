#include "enumerated_wavefronts.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <set>
#include <vector>

#include "attest/plan/catalog.h"
#include "attest/plan/launch.h"
#include "attest/simulator/expand_bulk.h"

namespace attest {
namespace {

/// Where a head's rows of each operand lie, in bytes.
struct HeadBytes {
  std::array<std::int64_t, 4> row0{}, row_stride{}, head_stride{};
  std::int64_t packed_heads = 1;  // whose rows alternate, of Q and O
};

/// Words of 4 bytes are in bank word % 32. Lanes take turns as 128 bytes allow, in their order; a turn takes as many
/// wavefronts as the fullest bank has different words. Two turns of loads are one where each 32 bytes of lanes read a
/// single 16 bytes of memory. TMA's own writes are not counted by the hardware.
struct EnumeratingSink {
  const HeadBytes& head;
  bool stores_zeros;
  EnumeratedWavefronts found{};
  std::int64_t of_last_copy = 0;
  SharedAccess last_copy{};

  static bool reads_half_of_its_lanes(const SharedAccess& a, int begin, int end) {
    if (a.kind != SharedAccess::Kind::load_word && a.kind != SharedAccess::Kind::load_staged) return false;
    std::map<int, std::set<std::uint32_t>> chunks;
    for (int lane = begin; lane < end; ++lane)
      if ((a.active >> lane & 1) != 0)
        chunks[lane * a.bytes / 32].insert(a.address[static_cast<std::size_t>(lane)] / 16);
    return std::all_of(chunks.begin(), chunks.end(), [](const auto& of) { return of.second.size() == 1; });
  }
  SharedAccess staged{};

  void shared(const SharedAccess& a) {
    if (stores_zeros && a.kind == SharedAccess::Kind::load_staged)
      staged = a;
    else
      enumerate(a);
  }
  void enumerate(const SharedAccess& a) {
    of_last_copy = 0;
    if (a.kind == SharedAccess::Kind::fill_bulk) return;
    std::int64_t wavefronts = 0, bytes = 0;
    for (int turn = 0, lanes_a_turn = 0; turn < 32; turn += lanes_a_turn) {
      lanes_a_turn = std::min(32, 128 / a.bytes);
      if (a.bytes >= 8 && turn % (2 * lanes_a_turn) == 0 && reads_half_of_its_lanes(a, turn, turn + 2 * lanes_a_turn))
        lanes_a_turn *= 2;
      std::array<std::vector<std::uint32_t>, 32> words_of_bank;
      for (int lane = turn; lane < turn + lanes_a_turn; ++lane) {
        if ((a.active >> lane & 1) == 0) continue;
        bytes += a.bytes;
        std::uint32_t before = ~0u;
        for (std::uint32_t byte = 0; byte < static_cast<std::uint32_t>(a.bytes); ++byte) {
          const std::uint32_t word = (a.address[static_cast<std::size_t>(lane)] + byte) >> 2;
          if (word != before) words_of_bank[word & 31].push_back(word);
          before = word;
        }
      }
      std::size_t fullest = 0;
      for (std::vector<std::uint32_t>& words : words_of_bank) {
        std::sort(words.begin(), words.end());
        words.erase(std::unique(words.begin(), words.end()), words.end());
        fullest = std::max(fullest, words.size());
      }
      wavefronts += static_cast<std::int64_t>(fullest);
    }
    found.wavefronts += wavefronts;
    found.ideal += (bytes + 127) / 128;
    if (a.kind == SharedAccess::Kind::fill_async) of_last_copy = wavefronts, last_copy = a;
  }
  /// A narrow cp.async takes a wavefront for each stretch of memory that it reads, if those are more. One of 16 bytes a
  /// lane takes one for all sectors that go from one line to one line of shared memory in the same way. Zeros in place
  /// of what is not there take as many as a store of them if one writes them, else as many as a store of all lanes, and
  /// one for each row but one that eight lanes read which have zeros among them. Ideal ones are those of what is read
  /// and of the store.
  void global(const GlobalAccess& a) {
    if (stores_zeros && a.write) {  // its lanes load what they have a row for
      staged.active &= a.active;
      enumerate(staged);
    }
    if (of_last_copy == 0) return;
    const auto x = static_cast<std::size_t>(a.operand);
    std::map<std::vector<std::int64_t>, int> pieces;  // by sector, place and shift of halves: which halves
    std::array<std::int64_t, 32> from{};
    std::int64_t stretches = 0, before = -1, zeros = 0;
    for (std::size_t lane = 0; lane < 32; ++lane) {
      if ((a.active >> lane & 1) == 0) continue;
      const std::int64_t pack = a.operand == Operand::q || a.operand == Operand::o ? head.packed_heads : 1;
      const std::int64_t first = head.row0[x] + a.row[lane] / pack * head.row_stride[x] +
                                 a.row[lane] % pack * head.head_stride[x] + a.byte[lane];
      from[lane] = first;
      stretches += first == before ? 0 : 1;
      before = first + a.bytes;
      const std::int64_t to = last_copy.address[lane];
      pieces[{first >> 5, to >> 5, (first ^ to) >> 4 & 3}] |= 1 << (first >> 4 & 1);
    }
    std::set<std::vector<std::int64_t>> moves;  // no sector goes to two places here
    for (const auto& [piece, halves] : pieces) moves.insert({piece[0] >> 2, piece[1] >> 2, piece[2], halves});
    const std::uint32_t without = last_copy.active & ~a.active;
    for (std::size_t turn = 0; turn < 32; turn += 8) {
      std::map<std::uint32_t, int> chunks;  // of a line of shared memory: how many zeros
      std::set<std::int64_t> rows;          // by where its first chunk of these lanes would lie
      int fullest = 0;
      for (std::size_t lane = turn; lane < turn + 8; ++lane) {
        if ((without >> lane & 1) != 0)
          fullest = std::max(fullest, ++chunks[last_copy.address[lane] >> 4 & 7]);
        else if ((a.active >> lane & 1) != 0)
          rows.insert(from[lane] - 16 * static_cast<std::int64_t>(lane));
      }
      if (stores_zeros)
        zeros += fullest;
      else if (!chunks.empty() && !rows.empty())
        zeros += std::ssize(rows) - 1;
    }
    if (!stores_zeros && without != 0) zeros += of_last_copy;
    if (a.bytes == 16 && without != 0) {
      const auto ideal = [](std::uint32_t lanes) { return (16 * std::popcount(lanes) + 127) / 128; };
      found.ideal += ideal(a.active);
      if (stores_zeros) found.ideal += ideal(without) - ideal(last_copy.active);
    }
    const std::int64_t wide = static_cast<std::int64_t>(moves.size()) + zeros;
    found.wavefronts += (a.bytes == 16 ? wide : std::max(stretches, of_last_copy)) - of_last_copy;
    of_last_copy = 0;
  }
  void bulk_row(Operand, int, int, bool) {}
  void atomic() {}
  void matrix_step() {}
  void exponentials(int, int) {}
};

/// Tensors start on lines of their own; a packed one has its batch entries one after the other.
HeadBytes bytes_of_head(const Case& c, const KernelPlan& plan, std::int64_t b, std::int64_t head) {
  const Problem& p = c.problem;
  const std::int64_t key_head = head / (p.nheads / p.nheads_k);
  HeadBytes result;
  result.packed_heads = plan.packed_heads;
  const auto place = [&](Operand x, std::int64_t rows, std::int64_t heads, std::int64_t columns, std::int64_t at,
                         const std::vector<std::int64_t>& packed) {
    std::int64_t rows_before = 0;
    for (std::size_t i = 0; !packed.empty() && i < static_cast<std::size_t>(b); ++i) rows_before += packed[i];
    if (!packed.empty()) rows = 0;
    for (const std::int64_t n : packed) rows += n;
    const TensorRef t = strides_of(c.layout, rows, heads, columns);
    const std::int64_t first = packed.empty() ? b * t.batch_stride : rows_before * t.row_stride;
    const auto i = static_cast<std::size_t>(x);
    result.row0[i] = (c.layout.base_offset + first + at * t.head_stride) * plan.bytes(x);
    result.row_stride[i] = t.row_stride * plan.bytes(x);
    result.head_stride[i] = t.head_stride * plan.bytes(x);
  };
  place(Operand::q, p.seqlen_q, p.nheads, p.headdim, head, p.varlen_q);
  place(Operand::k, p.seqlen_k, p.nheads_k, p.headdim, key_head, p.varlen_k);
  place(Operand::v, p.seqlen_k, p.nheads_k, p.headdim_v, key_head, p.varlen_k);
  place(Operand::o, p.seqlen_q, p.nheads, p.headdim_v, head, p.varlen_q);
  return result;
}

}  // namespace

std::optional<EnumeratedWavefronts> enumerated_wavefronts(const Case& c, const KernelPlan& plan,
                                                          std::int64_t key_tiles) {
  const Problem& p = c.problem;
  const int q_tiles = num_q_tiles(plan, p);
  constexpr std::int64_t few = 8;
  const std::int64_t ctas = p.batch * p.nheads / plan.packed_heads * q_tiles * plan.num_splits;
  if (key_tiles > few || ctas > 4 * few || c.layout.page_size != 0) return std::nullopt;
  const LengthArrays lengths(p);
  const Launch launch = make_launch(p, lengths.document_ends, plan.packed_heads);
  EnumeratedWavefronts total;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t head = 0; head < p.nheads; head += plan.packed_heads) {
      const HeadBytes at = bytes_of_head(c, plan, b, head);
      for (int cta = 0; cta < q_tiles * plan.num_splits; ++cta) {
        const Work work = make_work(launch, lengths.args(), b, cta / plan.num_splits, cta % plan.num_splits);
        if (!plan.has_rows(work)) continue;
        const Program program = record(plan, work);
        EnumeratingSink sink{at, plan.stores_zeros};
        for (std::size_t warp = 0; warp < program.warps.size(); ++warp) {
          for (const Step& step : program.warps[warp]) {
            if (plan.producer_warps == 0)
              expand(plan, work, step, static_cast<int>(warp), sink);
            else
              expand_warp_specialized(plan, work, step, static_cast<int>(warp), sink);
          }
        }
        total.wavefronts += sink.found.wavefronts, total.ideal += sink.found.ideal;
      }
    }
  }
  return total;
}

}  // namespace attest
