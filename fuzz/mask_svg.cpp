#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "attest/fuzz/mask_report.h"
#include "attest/fuzz/xml.h"
#include "mask_pair.h"
#include "mask_picture.h"

namespace attest {
namespace {

constexpr double left_margin = 66, gap = 92, right_margin = 34, least_page = 860;

// Lines of at most `width` characters, broken at spaces where there are any.
std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  while (text.size() > width) {
    const std::size_t space = text.rfind(' ', width);
    const bool found = space != std::string_view::npos && space > 0;
    const std::size_t end = found ? space : width;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(found ? end + 1 : end);
  }
  lines.emplace_back(text);
  return lines;
}

// 1, 2 or 5 times a power of ten, so that there are at most `most` of them.
std::int64_t tick_distance(std::int64_t length, double most) {
  for (std::int64_t power = 1;; power *= 10)
    for (const std::int64_t step : {power, 2 * power, 5 * power})
      if (static_cast<double>(length) / static_cast<double>(step) <= most) return step;
}

std::string text_at(double x, double y, std::string_view style, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, style, xml_escaped(text));
}

// Faint lines every `grid`, or every so many times `grid` that they stay apart.
std::string grid_lines(const MaskPicture& picture, std::int64_t rows, std::int64_t keys, std::int64_t grid) {
  const auto distance = [&](std::int64_t length, double side) {
    std::int64_t d = std::max<std::int64_t>(1, grid);
    while (static_cast<double>(d) * side < 14.0 * static_cast<double>(length)) d *= 2;
    return d;
  };
  std::string path;
  if (keys > 0)
    for (std::int64_t j = distance(keys, picture.width); j < keys; j += distance(keys, picture.width))
      path += fmt::format("M{:.2f} 0V{:.2f}", picture.x_of(static_cast<double>(j)), picture.height);
  if (rows > 0)
    for (std::int64_t i = distance(rows, picture.height); i < rows; i += distance(rows, picture.height))
      path += fmt::format("M0 {:.2f}H{:.2f}", picture.y_of(static_cast<double>(i)), picture.width);
  return path.empty() ? "" : fmt::format("<path d=\"{}\" class=\"grid\"/>\n", path);
}

std::string axes(const MaskPicture& picture, std::int64_t rows, std::int64_t keys) {
  std::string out = fmt::format("<rect x=\"0\" y=\"0\" width=\"{:.2f}\" height=\"{:.2f}\" class=\"frame\"/>\n",
                                picture.width, picture.height);
  const std::int64_t key_step = tick_distance(keys, std::max(1.0, picture.width / 52));
  const std::int64_t row_step = tick_distance(rows, std::max(1.0, picture.height / 26));
  for (std::int64_t j = 0; j < keys; j += key_step)
    out +=
        text_at(picture.x_of(static_cast<double>(j) + 0.5), picture.height + 16, "tick middle", fmt::format("{}", j));
  for (std::int64_t i = 0; i < rows; i += row_step)
    out += text_at(-7, picture.y_of(static_cast<double>(i) + 0.5) + 4, "tick end", fmt::format("{}", i));
  out += text_at(picture.width / 2, picture.height + 34, "axis middle", "key");
  return out + fmt::format("<text transform=\"translate(-46 {:.1f}) rotate(-90)\" class=\"axis middle\">query</text>\n",
                           picture.height / 2);
}

struct LegendEntry {
  PairState state;
  std::string text;
};

std::string legend(double y, double page, const MaskComparison& c, bool hidden, double& used) {
  std::vector<LegendEntry> entries = {
      {PairState::seen, "seen"},
      {PairState::unseen, "not seen"},
      {PairState::missing, fmt::format("missing {}", c.counts.missing)},
      {PairState::extra, fmt::format("extra {}", c.counts.extra)},
      {PairState::doubled, fmt::format("doubled {}", c.counts.doubled)},
  };
  if (c.counts.reweighted > 0)
    entries.push_back({PairState::reweighted, fmt::format("wrong weight {}", c.counts.reweighted)});
  if (c.unreadable_rows + c.foreign_rows > 0)
    entries.push_back(
        {PairState::unknown, fmt::format("rows unread or of another {}", c.unreadable_rows + c.foreign_rows)});
  std::string out;
  double x = left_margin;
  const auto entry = [&](std::string_view colour, const std::string& text) {
    const double width = 34 + 7.4 * static_cast<double>(text.size());
    if (x + width > page - right_margin) x = left_margin, used += 24;
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"14\" rx=\"2\" fill=\"{}\" stroke=\"#aab2c0\" "
        "stroke-width=\"0.6\"/>\n",
        x, y + used - 12, colour);
    out += text_at(x + 20, y + used, "legend", text);
    x += width;
  };
  for (const LegendEntry& e : entries) entry(mask_colours[static_cast<std::size_t>(e.state)], e.text);
  if (hidden) entry("#111827", fmt::format("denominator off {}", c.hidden_rows));
  used += 14;
  return out;
}

constexpr std::string_view style = R"(<style>
text{font-family:Helvetica,Arial,"Liberation Sans",sans-serif;fill:#1f2733}
.title{font-size:21px;font-weight:bold}.good{font-size:15.5px;font-weight:bold;fill:#14743c}
.bad{font-size:15.5px;font-weight:bold;fill:#c0140f}.head{font-size:14px;font-weight:bold}
.note{font-size:12.5px;fill:#4a5361}.mono{font-size:12px;font-family:"DejaVu Sans Mono",Menlo,Consolas,monospace;fill:#4a5361}
.row{font-size:12.5px;font-family:"DejaVu Sans Mono",Menlo,Consolas,monospace}
.tick{font-size:11px;fill:#4a5361}.axis{font-size:12.5px}.legend{font-size:13px}
.middle{text-anchor:middle}.end{text-anchor:end}
.grid{stroke:#0b1526;stroke-opacity:.13;stroke-width:.8;fill:none}.frame{fill:none;stroke:#7a8494;stroke-width:1}
.ring{fill:none;stroke:#111827;stroke-width:1.8}.halo{fill:none;stroke:#fff;stroke-width:4.5}
</style>
)";

}  // namespace

std::string mask_svg(const std::string& kernel, const Case& c, const RecoveredMask& mask, const MaskComparison& found,
                     std::int64_t grid) {
  const std::int64_t b = mask.batches == 0 ? 0 : std::max(found.worst_batch, mask.first_batch),
                     h = std::max(found.worst_head, mask.first_head);
  const MaskPicture picture(c.problem, mask, b, h);
  const double page = std::max(least_page, left_margin + 2 * picture.width + gap + right_margin);
  const auto letters = static_cast<std::size_t>((page - left_margin) / 7.6);
  const std::int64_t entries = mask.batches * mask.heads;

  std::string body = text_at(24, 38, "title", fmt::format("Which keys does {} see?", kernel));
  double y = 66;
  for (const std::string& line : wrapped(mask_sentence(kernel, found), static_cast<std::size_t>(page / 8.8))) {
    body += text_at(24, y, found.same() ? "good" : "bad", line);
    y += 21;
  }
  y += 2;
  for (const std::string& line : wrapped(command_line(c), letters)) {
    body += text_at(24, y, "mono", line);
    y += 17;
  }
  const std::string which = fmt::format("batch {}, head {}{}", b, h,
                                        entries <= 1   ? ""
                                        : found.same() ? fmt::format(" (one of {})", entries)
                                                       : fmt::format(" (the worst of {})", entries));
  y += 24;
  const double top = y + 14, left = left_margin, right = left + picture.width + gap;
  body += text_at(left, y, "head", "measured: what it sees");
  body += text_at(right, y, "head", "truth: what it should see");
  const std::string lines = grid_lines(picture, mask.seqlen_q, mask.seqlen_k, grid);
  const std::string frame = axes(picture, mask.seqlen_q, mask.seqlen_k);
  // Around what would be overlooked, not over what fills the picture.
  const auto wrong = static_cast<double>(found.counts.pairs());
  const bool ringed = !found.first.empty() && wrong <= 1e-3 * static_cast<double>(mask.weights.size());
  for (const bool measured : {true, false}) {
    body += fmt::format("<g transform=\"translate({:.1f} {:.1f})\">\n", measured ? left : right, top);
    body += fmt::format("<rect x=\"0\" y=\"0\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>\n", picture.width,
                        picture.height, mask_colours[0]);
    body += "<g shape-rendering=\"crispEdges\">\n" + picture.cells(measured) + "</g>\n" + lines;
    if (measured) body += picture.marks();
    body += frame;
    if (measured && ringed) {
      const double x =
          found.first_key < 0 ? picture.width / 2 : picture.x_of(static_cast<double>(found.first_key) + .5);
      const double row = picture.y_of(static_cast<double>(found.first.front().i) + .5);
      for (const char* shape : {"halo", "ring"})
        body += fmt::format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"11\" class=\"{}\"/>\n", x, row, shape);
    }
    body += "</g>\n";
  }
  y = top + picture.height + 68;
  double used = 0;
  body += legend(y, page, found, found.hidden_rows > 0, used);
  y += used + 14;
  std::vector<std::string> notes;
  std::string drawn = "drawn: " + which;
  if (picture.block_rows() > 1 || picture.block_keys() > 1)
    drawn += fmt::format(", in blocks of {} x {} pairs; a block with a difference shows it", picture.block_rows(),
                         picture.block_keys());
  notes.push_back(drawn + (!ringed ? "" : "; the ring is the first difference"));
  notes.push_back(fmt::format("read from O alone in {} launch{} with coded values, Q = 0; faint lines: tiles of {}",
                              mask.launches, mask.launches == 1 ? "" : "es", grid));
  for (std::size_t n = 0; n < std::min<std::size_t>(5, found.first.size()); ++n) {
    for (const std::string& line : wrapped(to_string(found.first[n]), letters)) {
      body += text_at(left_margin, y, "row", line);
      y += 18;
    }
  }
  if (!found.first.empty()) y += 6;
  for (const std::string& note : notes) {
    body += text_at(left_margin, y, "note", note);
    y += 18;
  }
  return fmt::format(
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" "
             "height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\">\n",
             page, y + 6) +
         std::string(style) + "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" + body + "</svg>\n";
}

}  // namespace attest
