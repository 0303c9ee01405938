// The ranking of `attest tune` in charts: bars of the fastest and the named plans, the best of each tile, and time
// against what a plan moves and holds.
const plans = data.plans, winner = plans && plans[0];
const ratio = (p) => (winner.time_us > 0 ? p.time_us / winner.time_us : 1);
const rough = (p) => (winner.rough_time_us > 0 ? p.rough_time_us / winner.rough_time_us : 1);  // short walks of both
const times = (r) => `${r.toFixed(r < 9.95 ? 2 : 0)}\u00a0×`;
const what = (p) => `${p.name}: ${time(p.time_us)}${p.full ? "" : " in a short walk"}, ${bytes(p.dram_bytes)} DRAM, ` +
  (data.cores ? "" : `${p.registers} registers, ${bytes(p.spill_bytes)} spilled, `) + `bound by ${p.bound}`;
/// Of a plan's time, and of what it is drawn against.
const howOf = (field, name) => `time: ${formulaOf("time_us")}` + (field ? `;\n${name}: ${formulaOf(field)}` : "");
const namedColors = d3.scale.ordinal().domain(plans.filter((p) => p.named).map((p) => p.name).sort())
  .range(["#d55e00", "#cc79a7", "#e69f00", "#7f4f24", "#56b4e9"]);
const colorOf = (p) => (p === winner ? colors.good : p.named ? namedColors(p.name) : colors.fused);

function drawFastest() {
  const rows = plans.filter((p, i) => i < 8 || p.named);
  say("fastest", "Predicted time; beside it how much longer than the first.");
  legend("fastest", [{ color: colors.good, text: "the winner" }].concat(plans.filter((p) => p.named && p !== winner)
    .map((p) => ({ color: colorOf(p), text: `${p.name}, rank ${p.rank}` }))));
  chart(section("fastest").select(".chart"), "Time of the fastest and the named plans", (svg, width) => {
    const e = em(), pitch = 2.7 * e, right = 8.6 * e;
    const x = d3.scale.linear().domain([0, d3.max(rows, (p) => p.time_us) || 1]).range([0, width - right]);
    rows.forEach((p, i) => {
      const y = i * pitch;
      textAt(svg, 0, y + 0.9 * e, `${p.rank}. ${p.name}`, { anchor: "start", cls: p === winner ? "strong" : "" });
      const bar = svg.append("rect").attr({ x: 0, y: y + 1.15 * e, width: Math.max(1, x(p.time_us)), height: 1.05 * e, fill: colorOf(p),
        "fill-opacity": p === winner || p.named ? 1 : 0.55 });
      tip(bar, what(p), howOf());
      textAt(svg, x(p.time_us) + 0.4 * e, y + 2 * e, `${time(p.time_us)}  ${times(ratio(p))}`, { anchor: "start", width });
    });
    return rows.length * pitch;
  });
}

function drawTiles() {
  const best = d3.nest().key((p) => p.tile_m).key((p) => p.tile_n).rollup((all) => all.reduce((a, b) => (rough(b) < rough(a) ? b : a))).map(plans);
  const numbers = (of) => d3.set(plans.map(of)).values().map(Number).sort(d3.ascending);
  const rows = numbers((p) => p.tile_m), columns = numbers((p) => p.tile_n);
  say("tiles", "The best plan of each tile as a multiple of the winner's time, each walked briefly: dark is fast. " +
    "Below 1: faster there, not where L2 of later waves counts. Empty: none fits.");
  chart(section("tiles").select(".chart"), "Best time of each tile", (svg, width) => {
    const e = em(), left = 3.4 * e, top = 2.6 * e, cell = Math.min(9 * e, (width - left) / columns.length), height = rows.length > 6 ? 2.2 * e : 3.6 * e;
    const shade = d3.scale.linear().domain([1, 1.1, 1.5, 3]).range(["#08519c", "#4292c6", "#c6dbef", "#f2f5f8"]).clamp(true);
    textAt(svg, 0, 0.9 * e, "queries × keys of a tile", { anchor: "start", cls: "soft" });
    const every = Math.ceil(2.2 * e / cell);
    columns.forEach((n, i) => { if (i % every === 0) textAt(svg, left + (i + 0.5) * cell, top - 0.4 * e, n, { cls: "soft" }); });
    rows.forEach((m, row) => {
      const y = top + row * height;
      textAt(svg, left - 0.5 * e, y + height / 2 + 0.3 * e, m, { anchor: "end", cls: "soft" });
      columns.forEach((n, i) => {
        const p = best[m] && best[m][n], wins = m === winner.tile_m && n === winner.tile_n;
        const box = svg.append("rect").attr({ x: left + i * cell + 1, y: y + 1, width: cell - 2, height: height - 2,
          fill: p ? shade(rough(p)) : "#fff", stroke: wins ? colors.good : p ? "none" : colors.line, "stroke-width": wins ? 3 : 1 });
        tip(box, p ? what(p) : `${m} × ${n}`, p ? "time in a short walk / the winner's in one" : "no plan of this tile fits");
        if (p && cell > 2.6 * e)
          textAt(svg, left + (i + 0.5) * cell, y + height / 2 + 0.3 * e, rough(p).toFixed(rough(p) < 9.95 ? 2 : 0), {}).style("fill", rough(p) < 1.25 ? "#fff" : colors.ink);
      });
    });
    return top + rows.length * height + 2;
  });
}

/// A label beside a mark, where no other stands; none if there is no such place.
function labelBeside(svg, box, x, y, text, taken) {
  const e = em(), node = svg.append("text").attr("class", "halo").text(text), size = node.node().getBBox();
  const places = d3.merge([0, 1.3, -1.3, 2.6, -2.6, 3.9, -3.9, 5.2].map((down) => [[0.6 * e, down * e], [-size.width - 0.6 * e, down * e]]));
  const free = places.map(([dx, dy]) => ({ x: x + dx, y: y + dy - 0.6 * e, width: size.width, height: size.height })).find((b) =>
    b.x >= box.left && b.x + b.width <= box.left + box.width && b.y >= box.top && b.y + b.height <= box.top + box.height &&
    taken.every((t) => b.x + b.width < t.x || t.x + t.width < b.x || b.y + b.height < t.y || t.y + t.height < b.y));
  if (!free) return node.remove();
  taken.push(free);
  node.attr({ x: free.x, y: free.y + size.height * 0.8 });
}

function drawAgainst() {
  const axesOf = [["dram_bytes", "DRAM bytes", bytes, true, "dram_bytes"], ["l2_read_bytes", "bytes from L2", bytes, true, "l2_read_bytes"]]
    .concat(data.cores ? [] : [["smem_bytes", "shared memory a CTA", bytes, true, "smem_bytes_per_cta"],
      ["registers", "registers a thread", grouped, false, "registers_per_thread"]])
    .filter(([field]) => plans.some((p) => p[field] > 0));
  say("against", `Each point is one of ${plural(plans.length, "plan")} that fit, time upward on a logarithmic axis: the lower the faster. ` +
    "Where points rise to the right, that quantity costs time; where they do not, something else binds.");
  legend("against", [
    { color: colors.good, kind: "round", text: "the winner" },
  ].concat(plans.filter((p) => p.named && p !== winner).map((p) => ({ color: colorOf(p), kind: "round", text: p.name }))).concat([
    { color: colors.fused, kind: "round", text: "walked in full" },
    { color: "#b6c2cd", kind: "round", text: "ranked by a short walk" },
  ]));
  const panels = section("against").select(".chart").classed("panels", true);
  axesOf.forEach(([field, label, format, binary, made]) => chart(panels.append("div"), `Time against ${label}`, (svg, width) => {
    const e = em(), box = { left: 4.8 * e, top: 2.6 * e, width: width - 6 * e, height: 12 * e };
    const shown = plans.filter((p) => p.time_us > 0 && p[field] > 0).sort((a, b) => b.rank - a.rank);
    const values = shown.map((p) => p[field]), low = d3.min(values) || 1, high = d3.max(values) || 1, log = high > 6 * low;
    const beside = (high - low || low) / 20;
    const x = (log ? d3.scale.log().domain([low / 1.2, high * 1.2]) : d3.scale.linear().domain([low - beside, high + beside]))
      .range([box.left, box.left + box.width]);
    const yDomain = [(d3.min(shown, (p) => p.time_us) || 1) / 1.25, (d3.max(shown, (p) => p.time_us) || 1) * 1.25];
    const y = d3.scale.log().domain(yDomain).range([box.top + box.height, box.top]);
    const unit = binary ? Math.pow(1024, Math.floor(Math.log(high) / Math.log(1024))) : 1;
    const most = Math.max(2, Math.floor(box.width / (5.5 * e)));
    const xTicks = log ? rounds(x.domain(), binary ? 4 : 10, most) : d3.scale.linear().domain(x.domain().map((v) => v / unit)).ticks(most).map((t) => t * unit);
    axes(svg, width, box, x, y, { xTicks, yTicks: rounds(yDomain, 10, 6), xFormat: (v) => brief(format(v)), yFormat: (v) => brief(time(v)), xLabel: label, yLabel: "time" });
    shown.forEach((p) => {
      const marked = p === winner || p.named;
      const dot = svg.append("circle").attr({ cx: x(p[field]), cy: y(p.time_us), r: (marked ? 0.42 : 0.24) * e,
        fill: marked || p.full ? colorOf(p) : "#b6c2cd", "fill-opacity": marked ? 1 : 0.7, stroke: marked ? "#fff" : "none", "stroke-width": 1.5 });
      tip(dot, what(p), howOf(made, label));
    });
    const taken = [];
    shown.filter((p) => p === winner || p.named).reverse()
      .forEach((p) => labelBeside(svg, box, x(p[field]), y(p.time_us), p.named ? p.name : "winner", taken));
    return box.top + box.height + 2.8 * e;
  }));
}
