// What every chart shares: an SVG as wide as its place, drawn again when that changes, axes, and legends. Text is always
// set as text, never as markup: names in the data came from outside.
const data = JSON.parse(document.getElementById("data").textContent);
const predict = data.predict;
const em = () => parseFloat(getComputedStyle(document.documentElement).fontSize);
const section = (id) => d3.select("#" + id);
const say = (id, text) => section(id).select(".say").text(text);

const charts = [];
/// `draw(svg, width)` returns the height; `where` is a selection with room for it.
function chart(where, label, draw) {
  charts.push({ where, label, draw });
}
function drawChart({ where, label, draw }) {
  where.selectAll("svg").remove();
  const width = Math.max(240, Math.floor(where.node().clientWidth));
  const svg = where.append("svg").attr({ role: "img", "aria-label": label });
  svg.style("font-size", 0.72 * em() + "px");  // so that text scales with the drawing on paper
  svg.attr("viewBox", `0 0 ${width} ${Math.ceil(draw(svg, width))}`);
}
const drawAll = () => charts.forEach(drawChart);

function legend(id, entries) {
  const items = section(id).select(".legend").selectAll("li").data(entries);
  items.enter().append("li").attr("class", (d) => d.kind || "").style("--key", (d) => d.color).text((d) => d.text);
}
/// What marks show on hover: their figure, and below it how that is made; either a function of a mark's datum if wanted.
const tip = (selection, text, how) => selection.append("title").text((q) => {
  const [figure, formula] = [text, how].map((t) => (typeof t === "function" ? t(q) : t));
  return formula ? `${figure}\n= ${formula}` : figure;
});

/// A text, moved inward where it would leave 0 to `width`.
function textAt(parent, x, y, text, { anchor = "middle", cls = "", width = Infinity } = {}) {
  const node = parent.append("text").attr({ x, y, "text-anchor": anchor, class: cls }).text(text);
  const box = node.node().getBBox();
  if (box.x < 0) node.attr("x", x - box.x);
  if (box.x + box.width > width) node.attr("x", x - (box.x + box.width - width));
  return node;
}

/// A text from `x` on, cut where it would pass `width`; the whole of it shows on hover.
function textCut(parent, x, y, text, width) {
  const node = parent.append("text").attr({ x, y, "text-anchor": "start" }).text(text);
  for (let n = text.length; n > 1 && x + node.node().getComputedTextLength() > width; --n) node.text(text.slice(0, n - 1) + "\u2026");
  if (node.text() !== text) tip(node, text);
}

/// Whole powers of 10 (or 2) in a domain, thinned to at most `most`.
function powers([low, high], base, most) {
  const log = (x) => Math.log(x) / Math.log(base);
  const first = Math.ceil(log(low) - 1e-9), last = Math.floor(log(high) + 1e-9);
  const every = Math.max(1, Math.ceil((last - first + 1) / Math.max(1, most)));
  return d3.range(first, last + 1, every).map((e) => Math.pow(base, e));
}

/// Round values in a logarithmic domain: whole powers, and where those are too few, what stands between them.
function rounds(domain, base, most) {
  const whole = powers(domain, base, most);
  if (whole.length >= 3) return whole;
  const first = Math.pow(base, Math.floor(Math.log(domain[0]) / Math.log(base)));
  const between = (steps) => d3.merge(d3.range(0, 4).map((e) => steps.map((s) => s * first * Math.pow(base, e))))
    .filter((v) => v >= domain[0] && v <= domain[1]);
  const few = between([1, 2, 5].filter((s) => s < base)), all = few.length >= 3 ? few : between(d3.range(1, base, base < 10 ? 0.5 : 1));
  return all.filter((_, i) => i % Math.ceil(all.length / most) === 0);
}

/// Axes with a faint grid; `box` is the plot's {left, top, width, height} in a chart of `width`.
function axes(svg, width, box, x, y, { xTicks, yTicks, xFormat, yFormat, xLabel, yLabel }) {
  const e = em();
  const grid = svg.append("g").attr("class", "grid");
  grid.selectAll("line.x").data(xTicks).enter().append("line")
    .attr({ x1: x, x2: x, y1: box.top, y2: box.top + box.height });
  grid.selectAll("line.y").data(yTicks).enter().append("line")
    .attr({ y1: y, y2: y, x1: box.left, x2: box.left + box.width });
  const axis = svg.append("g").attr("class", "axis");
  axis.append("path").attr("d", `M${box.left},${box.top}V${box.top + box.height}H${box.left + box.width}`);
  xTicks.forEach((t) => textAt(svg, x(t), box.top + box.height + 1.1 * e, xFormat(t), { cls: "soft", width }));
  yTicks.forEach((t) => textAt(svg, box.left - 0.4 * e, y(t) + 0.25 * e, yFormat(t), { anchor: "end", cls: "soft" }));
  textAt(svg, box.left + box.width, box.top + box.height + 2.3 * e, xLabel, { anchor: "end", cls: "soft" });
  textAt(svg, 0, box.top - 1.2 * e, yLabel, { anchor: "start", cls: "soft" });
}
