// The page of `attest measure CASE --html`.
const call = calls[0];
const rows = kinds.map((kind, i) => ({ kind, predicted: call.predicted[i], measured: call.measured[i], error: call.errors[i], deviation: call.deviations[i] }))
  .filter((q) => q.kind.name !== "kernels" && (q.predicted !== null || q.measured !== null));
const compared = rows.filter((q) => q.error !== null);
const figureOf = (q, x) => (x === null ? "\u2013" : shownFigure[q.kind.unit](x));

function drawCallCards() {
  ["dram_read_bytes", "sm_read_bytes", "smem_wavefronts", "cycles"].forEach((name) => {
    const q = compared.find((r) => r.kind.name === name);
    if (q) card(ratio(q), `${title(name)}, predicted over measured`,
      `${figureOf(q, q.predicted)} predicted, ${figureOf(q, q.measured)} measured by ${q.kind.counter}`);
  });
}

/// How far off each figure is, a row each.
function drawRatios() {
  say("ratios", compared.length === 0 ? `Nothing is predicted of this call: ${call.unpredicted}.`
    : `What predicted and measured differ by, of what was measured (${ofWrites}): to the left too little was predicted, to the right too much${counted > 1 ? `; across, the standard deviation of ${counted} counts` : ""}.`);
  if (compared.length === 0) return;
  legend("ratios", grades.map(([, color, text]) => ({ color, kind: "round", text })));
  chart(section("ratios").select(".chart"), "how far off each figure is", (svg, width) => {
    const e = em(), line = 1.5 * e, box = { left: 11 * e, top: 2.4 * e, width: width - 12.5 * e, height: line * compared.length };
    const most = 1.15 * Math.min(1, Math.max(0.1, d3.max(compared, (q) => off(q) + (q.deviation || 0))));
    const x = d3.scale.linear().domain([-most, most]).range([box.left, box.left + box.width]).clamp(true);
    const y = d3.scale.linear().domain([0, compared.length]).range([box.top, box.top + box.height]);
    const ticks = x.ticks(Math.min(8, Math.max(2, Math.floor(box.width / (5 * e)))));
    axes(svg, width, box, x, y, { xTicks: ticks, yTicks: [], xFormat: (v) => (v > 0 ? "+" : "") + Math.round(100 * v) + "%", yFormat: String,
      xLabel: "predicted less measured", yLabel: "" });
    svg.append("line").attr({ x1: x(0), x2: x(0), y1: box.top, y2: box.top + box.height, stroke: colors.soft });
    compared.forEach((q, i) => {
      const at = x(q.predicted < q.measured ? -off(q) : off(q)), middle = y(i + 0.5);
      textAt(svg, box.left - 0.6 * e, middle + 0.25 * e, title(q.kind.name), { anchor: "end" });
      svg.append("line").attr({ x1: x(0), x2: at, y1: middle, y2: middle, stroke: shadeOf(q), "stroke-width": 0.2 * e });
      if (q.deviation !== null)
        svg.append("line").attr({ x1: x(x.invert(at) - q.deviation), x2: x(x.invert(at) + q.deviation), y1: middle, y2: middle, stroke: colors.ink, "stroke-width": 0.1 * e });
      tip(svg.append("circle").attr({ cx: at, cy: middle, r: 0.35 * e, fill: shadeOf(q) }),
        `${title(q.kind.name)}: predicted ${figureOf(q, q.predicted)}, measured ${figureOf(q, q.measured)}, ratio ${ratio(q)}`);
    });
    return box.top + box.height + 2.8 * e;
  });
}

function drawFigures() {
  say("figures", `${call.words}${counted > 1 ? `; measured is the mean of ${counted} counts, \u00b1 their standard deviation` : ""}${call.bound ? `; bound by ${call.bound}` : ""}.`);
  table(section("figures").select("table"),
    [["figure"], ["predicted", "number"], ["measured", "number"], ["ratio", "number"], ["counter", "formula"], ["model", "formula"]],
    rows.map((q) => [title(q.kind.name), figureOf(q, q.predicted), figureOf(q, q.measured) + spread(q),
      compared.indexOf(q) < 0 ? "\u2013" : ratio(q), q.kind.counter, q.kind.model]));
}

[drawCallCards, drawRatios, drawFigures].forEach((draw) => draw());
