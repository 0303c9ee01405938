// The page of `attest measure --panel --html`.
const pointsOf = (i) => calls.map((c) => ({ call: c, predicted: c.predicted[i], measured: c.measured[i], error: c.errors[i], deviation: c.deviations[i] }))
  .filter((q) => q.error !== null);
const drawn = kinds.map((kind, i) => ({ kind, i, points: pointsOf(i) })).filter((f) => f.points.length > 0 && f.kind.name !== "kernels");
const ofCall = (q, format) => `${q.call.words}: predicted ${format(q.predicted)}, measured ${format(q.measured)}${spread(q)}, ratio ${ratio(q)}`;
// What is counted a second time under another name says nothing new about a model.
const sameAgain = ["l2_write_bytes", "spill_store_instructions", "time_us"];
const first = ["smem_wavefronts", "sm_read_bytes", "dram_read_bytes", "cycles"];  // from the right
const modelled = drawn.filter((f) => f.kind.model !== "" && sameAgain.indexOf(f.kind.name) < 0)
  .sort((a, b) => first.indexOf(b.kind.name) - first.indexOf(a.kind.name) || a.i - b.i);
const mechanisms = d3.set(calls.map((c) => c.mechanism)).values();
const pointsOfMechanism = (f, mechanism) => f.points.filter((q) => q.call.mechanism === mechanism);
const most = (f) => d3.max(f.points, off), mean = (f) => d3.mean(f.points, off);
const measuredOnly = (c) => c.predicted.every((x) => x === null);

function drawMeasureCards() {
  [["smem_wavefronts", 0.002], ["sm_read_bytes", 0.002], ["dram_read_bytes", 0.02], ["cycles", 0.1]].forEach(([name, limit]) => {
    const f = drawn.find((g) => g.kind.name === name);
    if (f) card(`${f.points.filter((q) => off(q) <= limit).length} of ${f.points.length}`, `${title(name)} within ${percent(limit)}`,
      `${percent(mean(f))} off on average, ${percent(most(f))} at most${counted > 1 ? `, where counts deviate by ${percent(d3.max(f.points, (q) => q.deviation) || 0)} at most` : ""}; by ${f.kind.counter}`);
  });
}

function diagonal(where, f) {
  const format = shownFigure[f.kind.unit];
  chart(where, `${title(f.kind.name)}: predicted against measured`, (svg, width) => {
    const e = em(), box = { left: 5.2 * e, top: 2.6 * e, width: width - 6.6 * e, height: 12 * e };
    const values = d3.merge(f.points.map((q) => [q.predicted, q.measured])).filter((v) => v > 0);
    const domain = [d3.min(values) / 1.5, d3.max(values) * 1.5];
    const x = d3.scale.log().domain(domain).range([box.left, box.left + box.width]);
    const y = d3.scale.log().domain(domain).range([box.top + box.height, box.top]);
    const ticks = rounds(domain, f.kind.unit === "B" ? 4 : 10, Math.max(2, Math.floor(box.width / (5 * e))));
    axes(svg, width, box, x, y, { xTicks: ticks, yTicks: ticks, xFormat: (v) => brief(format(v)), yFormat: (v) => brief(format(v)),
      xLabel: "measured", yLabel: `${title(f.kind.name)}, predicted` });
    svg.append("line").attr({ x1: x(domain[0]), y1: y(domain[0]), x2: x(domain[1]), y2: y(domain[1]), stroke: colors.soft, "stroke-dasharray": "3 4" });
    f.points.forEach((q) => tip(svg.append("circle").attr({ cx: x(Math.max(q.measured, domain[0])), cy: y(Math.max(q.predicted, domain[0])), r: 0.3 * e,
      fill: shadeOf(q), "fill-opacity": 0.75, stroke: "#fff" }), ofCall(q, format)));
    return box.top + box.height + 2.8 * e;
  });
}

function drawDiagonals() {
  say("diagonals", drawn.length === 0 ? "Nothing was predicted of these calls, so there is nothing to hold the counters against."
    : "A point a call, logarithmic axes; on the dashed line both are equal. What was predicted or measured as 0 stands on an edge.");
  legend("diagonals", grades.map(([, color, text]) => ({ color, kind: "round", text })));
  drawn.filter((f) => f.points.some((q) => q.predicted > 0 || q.measured > 0)).forEach((f) => diagonal(section("diagonals").select(".chart").append("div"), f));
}

function drawErrors() {
  say("errors", `What predicted and measured differ by, of what was measured (${ofWrites}): mean and most of the calls that a mechanism was chosen for; coloured by the mean; a dash where nothing is predicted.`);
  legend("errors", grades.map(([, color, text]) => ({ color, kind: "round", text })));
  const rows = mechanisms.filter((m) => m !== "").concat("all");
  const shades = [], cells = rows.map((mechanism) => [mechanism].concat(modelled.map((f) => {
    const points = mechanism === "all" ? f.points : pointsOfMechanism(f, mechanism);
    shades.push(points.length === 0 ? null : grades.find(([limit]) => d3.mean(points, off) <= limit)[1]);
    return points.length === 0 ? "\u2013" : `${percent(d3.mean(points, off))} / ${percent(d3.max(points, off))}`;
  })));
  table(section("errors").select("table"), [["mechanism"]].concat(modelled.map((f) => [title(f.kind.name), "number"])), cells);
  section("errors").selectAll("td.number").data(shades).style("box-shadow", (color) => color === null ? null : `inset -0.3rem 0 ${color}`);
}

/// A row for each figure of each mechanism, by its worst call.
const shownGroups = 15;
const deviations = counted > 1 ? " What was measured is the mean of counts, \u00b1 their standard deviation." : "";
function drawWorst() {
  const groups = d3.merge(modelled.map((f) => mechanisms.map((mechanism) => {
    const points = pointsOfMechanism(f, mechanism).sort((a, b) => off(b) - off(a));
    return { f, mechanism, points, beyond: points.filter((q) => off(q) > grades[1][0]).length };
  }))).filter((g) => g.beyond > 0).sort((a, b) => off(b.points[0]) - off(a.points[0]));
  say("worst", groups.length === 0 ? "Every figure of every call is within 10%."
    : `A row for a figure of a mechanism's calls, by its worst call, with the model that it comes from; ${groups.length} have a call more than 10% off, ${groups.length > shownGroups ? `the worst ${shownGroups}` : "these"}.${deviations}`);
  table(section("worst").select("table"),
    [["off", "number"], ["figure"], ["mechanism"], ["calls beyond 10%", "number"], ["predicted", "number"], ["measured", "number"], ["the worst call"], ["why", "formula"]],
    groups.slice(0, shownGroups).map(({ f, mechanism, points, beyond }) => {
      const format = shownFigure[f.kind.unit], q = points[0];
      return [percent(off(q)), title(f.kind.name), mechanism || "\u2013", `${beyond} of ${points.length}`, format(q.predicted), format(q.measured) + spread(q), q.call.words,
        f.kind.model];
    }));
}

function drawCalls() {
  say("calls", `${plural(calls.length, "call")}; ratios of predicted over measured${counted > 1 ? `, the mean of up to ${counted} counts` : ""}. ${plural(calls.filter(measuredOnly).length, "call")} without a prediction.`);
  const columns = drawn.filter((f) => f.kind.model !== "");
  table(section("calls").select("table"), [["mechanism"], ["call"]].concat(columns.map((f) => [title(f.kind.name), "number"]), [["bound by"]]),
    calls.map((c) => [c.mechanism || "\u2013", c.words].concat(columns.map((f) => {
      const q = f.points.find((p) => p.call === c);
      const none = c.predicted[f.i] > 0 && c.measured[f.i] === 0 ? "of 0" : "\u2013";
      return q && q.measured > 0 ? ratio(q) : none;
    }), c.bound || c.unpredicted || "\u2013")));
}

[drawMeasureCards, drawWorst, drawErrors, drawDiagonals, drawCalls].forEach((draw) => draw());
