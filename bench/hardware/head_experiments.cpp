// Heads of tensors [rows, heads, columns] whose rows fill lines in part, as kernels read and write them
// (docs/results/h200-l2.md).
#include <tuple>
#include <utility>

#include "boxes.h"
#include "experiments.h"
#include "page_lists.h"
#include "phases.h"

namespace attest::hardware {
namespace {

// One head's rows, 192 or 256 bytes of every `row_stride`, read five times by both sides; `mib` of lines, two a row.
void head_read(const Bench& bench) {
  struct Way {
    const char* how;
    PhaseOp op;
  };
  for (const Way& way : {Way{"read", PhaseOp::read}, Way{"read_async_line", PhaseOp::read_async_line}})
    for (const int row_stride : {24 * 128, 42 * 128})
      for (const auto& [row_bytes, base] : {std::pair{256, 0}, {192, 0}, {192, 192}, {64, 0}})
        for (const int size : {16, 20, 24, 28}) {
          bench.row(way.how, row_stride, row_bytes, base, size);
          const std::int64_t rows = size * kMiB / 256;
          run_phases({{.op = way.op,
                       .workers = Workers::both_sides,
                       .bytes = rows * row_bytes,
                       .base = base,
                       .row_bytes = row_bytes,
                       .row_stride = row_stride,
                       .rounds = 5}},
                     bench.buffer, bench.sms);
        }
}

// Parts of lines by where they begin: rows of one line or two, of which so many bytes are read from `base` on, five
// times, by one side or both; `mib` of lines.
void head_parts(const Bench& bench) {
  struct Way {
    const char* how;
    PhaseOp op;
  };
  for (const Way& way : {Way{"read", PhaseOp::read}, Way{"read_async_line", PhaseOp::read_async_line}})
    for (const int sides : {1, 2})
      for (const auto& [row_bytes, base] : {std::pair{256, 0},
                                            {256, 128},
                                            {192, 0},
                                            {192, 64},
                                            {192, 128},
                                            {192, 192},
                                            {160, 0},
                                            {160, 96},
                                            {160, 224},
                                            {128, 0},
                                            {128, 64},
                                            {128, 128},
                                            {128, 192},
                                            {64, 0},
                                            {64, 64},
                                            {64, 128},
                                            {64, 192}})
        for (const int size : {20, 24}) {
          bench.row(way.how, sides, row_bytes, base, size);
          const int lines = (base % 128 + row_bytes + 127) / 128;
          const std::int64_t rows = size * kMiB / (128 * lines);
          run_phases({{.op = way.op,
                       .workers = sides == 2 ? Workers::both_sides : Workers::side0,
                       .bytes = rows * row_bytes,
                       .base = base,
                       .row_bytes = row_bytes,
                       .row_stride = 24 * 128,
                       .rounds = 5}},
                     bench.buffer, bench.sms);
        }
}

// The same of whole lines, two a row, by how many lines lie between rows: as many heads of 128 columns are half of it.
void head_strides(const Bench& bench) {
  for (const int lines : {6, 12, 14, 18, 20, 24, 25, 30, 32, 34, 35, 36, 40, 42})
    for (const int size : {16, 20, 24, 28}) {
      bench.row(lines, size);
      run_phases({{.op = PhaseOp::read,
                   .workers = Workers::both_sides,
                   .bytes = size * kMiB,
                   .row_bytes = 256,
                   .row_stride = 128 * lines,
                   .rounds = 5}},
                 bench.buffer, bench.sms);
    }
}

// Heads read by boxes of 64 columns, once or five times: what beyond their own bytes comes with them.
void head_boxes(const Bench& bench) {
  for (const int promotion : {0, 1, 2, 3})
    for (const auto& [columns, heads, first, read] : {std::tuple{64, 28, 0, 1},
                                                      {64, 28, 1, 1},
                                                      {96, 28, 0, 1},
                                                      {96, 28, 1, 1},
                                                      {96, 28, 0, 2},
                                                      {96, 28, 1, 2},
                                                      {128, 28, 0, 1}})
      for (const auto& [rows, rounds] : {std::pair{16384, 1}, {65536, 5}, {98304, 5}}) {
        bench.row(promotion, columns, heads, first, read, rows, rounds);
        run_boxes({.heads = heads,
                   .columns = columns,
                   .rows = rows,
                   .first_head = first,
                   .heads_read = read,
                   .promotion = promotion,
                   .rounds = rounds},
                  bench.buffer, bench.sms);
      }
}

// Where the bytes lie that boxes ask for beyond a tensor's columns: every half of a line in L2 after one head was read.
void beyond_columns(const Bench& bench) {
  constexpr int kRows = 64;
  constexpr std::int64_t kFlushed = 256 * kMiB;
  for (const auto& [columns, heads, head, promotion] : {std::tuple{128, 28, 0, 0},
                                                        {96, 28, 0, 0},
                                                        {96, 28, 1, 0},
                                                        {96, 28, 2, 0},
                                                        {96, 28, 3, 0},
                                                        {96, 28, 27, 0},
                                                        {96, 16, 0, 0},
                                                        {96, 16, 1, 0},
                                                        {96, 36, 5, 0},
                                                        {96, 1, 0, 0},
                                                        {160, 6, 0, 0},
                                                        {160, 6, 1, 0},
                                                        {72, 28, 0, 0},
                                                        {72, 28, 1, 0},
                                                        {80, 16, 0, 0},
                                                        {80, 16, 1, 0},
                                                        {96, 28, 0, 2}}) {
    const BoxWalk walk{.heads = heads, .columns = columns, .rows = kRows, .first_head = head, .promotion = promotion};
    const std::int64_t bytes = (std::int64_t{2} * columns * heads * kRows / kPageBytes + 1) * kPageBytes;
    for (const int half : halves_after_boxes(walk, bench.buffer, bytes, bench.buffer + kFlushed, kFlushed, bench.sms))
      bench.row(columns, heads, head, promotion, half);
  }
}

}  // namespace

std::vector<Experiment> head_experiments() {
  return {{"head_read", "how,row_stride,row_bytes,base,mib", head_read},
          {"head_parts", "how,sides,row_bytes,base,mib", head_parts},
          {"head_strides", "lines,mib", head_strides},
          {"head_boxes", "promotion,columns,heads,first,read,rows,rounds", head_boxes},
          {"beyond_columns", "columns,heads,head,promotion,half", beyond_columns}};
}

}  // namespace attest::hardware
