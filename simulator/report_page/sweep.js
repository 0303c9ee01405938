// The page of `attest predict --sweep`.
const points = data.points, field = data.field;
// Numbers by their size; what has no order as it was asked for.
const shown = points.filter((q) => q.refused === "");
if (data.numeric) shown.sort((a, b) => a.value - b.value);
const xs = shown.map((q) => q.value);
/// Neighbours that are the same factor apart, so that a logarithmic axis spaces them evenly.
const geometric = data.numeric && xs.length >= 3 && xs[0] > 0 && xs[1] / xs[0] > 1.3 &&
  xs.every((v, i) => i === 0 || Math.abs(v / xs[i - 1] / (xs[1] / xs[0]) - 1) < 0.01);
const wide = (fields) => {
  const all = d3.merge(fields.map((f) => shown.map((q) => q[f]))).filter((v) => v > 0);
  return d3.max(all) > 10 * d3.min(all);
};
const lengthLike = /^(seqlen|window|prefix|page_size)/.test(field);
const nameOf = (q) => (data.numeric ? grouped(q.value) : q.value);
const xFormat = !data.numeric ? String : lengthLike ? tokens : grouped;
const pointText = (q, text) => `${field} ${nameOf(q)}: ${text}; bound by ${q.bound}`;
const ofSome = (f) => shown.some((q) => formulaOf(f, q.cores) !== null);  // devices of one kind lack figures of the other
const figure = (panels, title, series, format, binary) => series.some(([f]) => ofSome(f)) && (data.numeric ? curve : bars)(panels.append("div"), shown, { title, label: `${title} against ${field}`,
  xOf: (q) => q.value, series, format, logX: geometric, logY: wide(series.map(([f]) => f)), binary, xTicks: xs, xFormat, xLabel: field,
  filled: () => false, nameOf, tip: pointText });
const rate = (q) => (q.time_us > 0 ? q.flops / q.time_us * 1e6 : 0);  // FLOP/s
const panelsOf = (id) => section(id).select(".chart").classed("panels", true);
const changes = (f) => shown.some((q) => q[f] !== shown[0][f]);

function drawSweepCards() {
  const first = shown[0], last = shown[shown.length - 1];
  const both = (f, format) => (shown.length === 1 ? format(f(first)) : `${format(f(first))} \u2192 ${format(f(last))}`);
  const rates = shown.map(rate), span = `${field} ${xFormat(first.value)}` + (shown.length === 1 ? "" : ` and ${xFormat(last.value)}`);
  card(both((q) => q.time_us, time), `time at ${span}`, formulaOf("time_us"));
  card(both((q) => q.unfused_time_over_fused, (v) => v.toFixed(2)) + "\u00a0×", "as long without fusing", formulaOf("unfused_time_over_fused"));
  card(both((q) => q.dram_bytes, bytes), "through DRAM", formulaOf("dram_bytes"));
  card(both((q) => q.hbm_reduction_vs_unfused, percent), "less DRAM than unfused", formulaOf("hbm_reduction_vs_unfused"));
  card(flopRate(d3.max(rates)), `needed arithmetic at best, at ${xFormat(shown[rates.indexOf(d3.max(rates))].value)}`, formulaOf("flop_rate"));
}

function drawCurves() {
  say("curves", `Time with launches (${data.launch_us.map((us) => time(us)).join(" or ")} each), and what passes through DRAM.` +
    (!data.numeric ? "" : geometric ? " Logarithmic axes." : " Axes of what differs more than tenfold are logarithmic.") +
    (shown.some((q) => q.dram_bytes < q.compulsory_bytes) ? " Fewer bytes than compulsory: what is written is still in L2 when a short kernel ends." : ""));
  legend("curves", [
    { color: colors.fused, kind: "line", text: "fused" },
    { color: colors.unfused, kind: "line", text: "unfused" },
    { color: colors.good, kind: "line dashed", text: "compulsory bytes" },
  ]);
  const panels = panelsOf("curves");
  figure(panels, "Time", [["launched_time_us", colors.fused], ["unfused_time_us", colors.unfused]], time, false);
  figure(panels, "DRAM bytes", [["dram_bytes", colors.fused], ["unfused_dram_bytes", colors.unfused], ["compulsory_bytes", colors.good, "3 4"]], bytes, true);
}

function drawBounds() {
  const names = d3.set(shown.map((q) => q.bound)).values();
  const shade = d3.scale.ordinal().domain(names).range(["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#8c959f"]);
  const rates = shown.map(rate);
  say("bounds", `The busiest resource at each ${field}; needed arithmetic goes at ${flopRate(d3.min(rates))} to ${flopRate(d3.max(rates))}.`);
  legend("bounds", names.map((name) => ({ color: shade(name), text: name })));
  chart(section("bounds").select(".chart").append("div"), "What binds at each point", (svg, width) => {
    const e = em(), cell = width / shown.length, every = Math.ceil(shown.length * (0.9 + 0.5 * d3.max(xs, (v) => xFormat(v).length)) * e / width);
    shown.forEach((q, i) => {
      tip(svg.append("rect").attr({ x: i * cell, y: 0, width: Math.max(0.5, cell - (cell > 4 ? 2 : 0)), height: 1.8 * e, fill: shade(q.bound) }),
        `${field} ${nameOf(q)}: bound by ${q.bound}, ${flopRate(rate(q))}`, formulaOf("bound", q.cores));
      if (i % every === 0) textAt(svg, (i + 0.5) * cell, 3 * e, xFormat(q.value), { cls: "soft", width });
    });
    return 3.4 * e;
  });
}

function drawSteps() {
  say("steps", !data.numeric ? "None: these values have no order in which time could step." : data.steps.length > 0 ? "Time changes here by more than a tenth beside what the other steps lead one to expect."
    : "None: time changes from point to point as the others lead one to expect, within a tenth.");
  section("steps").select("ul").selectAll("li").data(data.steps).enter().append("li").text(String);
}

function drawInside() {
  if (!ofSome("smem_wavefronts")) {
    say("inside", "The bytes that the cores ask for beside those that L2 serves.");
    legend("inside", [{ color: colors.fused, kind: "line", text: "bytes from L2" }, { color: colors.bad, kind: "line", text: "bytes that the cores ask for" }]);
    return figure(panelsOf("inside"), "Bytes towards the cores", [["sm_read_bytes", colors.bad], ["l2_read_bytes", colors.fused]], bytes, true);
  }
  say("inside", "Shared-memory wavefronts beside what they would be without bank conflicts, and the bytes that the SMs ask for beside those that L2 serves.");
  legend("inside", [{ color: colors.fused, kind: "line", text: "wavefronts; bytes from L2" }, { color: colors.bad, kind: "line", text: "bytes that the SMs ask for" },
    { color: colors.good, kind: "line dashed", text: "wavefronts without conflicts" }]);
  const panels = panelsOf("inside");
  figure(panels, "Shared-memory wavefronts", [["smem_wavefronts", colors.fused], ["smem_wavefronts_ideal", colors.good, "3 4"]], count, false);
  figure(panels, "Bytes towards the SMs", [["sm_read_bytes", colors.bad], ["l2_read_bytes", colors.fused]], bytes, true);
}

function drawThread() {
  const all = [["registers_per_thread", "Registers a thread", grouped], ["spill_bytes_per_thread", "Spilled a thread and key tile", bytes],
    ["smem_bytes_per_cta", "Shared memory a CTA", bytes], ["ctas_per_sm", "CTAs an SM", grouped]];
  const same = all.filter(([f]) => !changes(f) && ofSome(f)).map(([f, title, format]) => `${title.toLowerCase().replace(/ctas an sm/, "CTAs an SM").replace(/cta$/, "CTA")} ${format(shown[0][f])}`);
  say("thread", same.length === 0 ? "All of it changes." : `The same at every point: ${same.join("; ")}.`);
  const panels = panelsOf("thread");
  all.filter(([f]) => changes(f)).forEach(([f, title, format]) => figure(panels, title, [[f, colors.fused]], format, format === bytes));
}

function drawPoints() {
  const heads = [[field, data.numeric ? "number" : ""], ["time", "number"], ["unfused", "number"], ["× fused", "number"], ["DRAM", "number"], ["unfused", "number"], ["compulsory", "number"],
    ["rate", "number"], ["conflicts", "number"], ["tile"], ["warps", "number"], ["stages", "number"], ["registers", "number"], ["spill", "number"], ["CTAs an SM", "number"], ["bound"]];
  const cells = (q) => [nameOf(q), time(q.time_us), time(q.unfused_time_us), q.unfused_time_over_fused.toFixed(2), bytes(q.dram_bytes), bytes(q.unfused_dram_bytes),
    bytes(q.compulsory_bytes), q.time_us > 0 ? flopRate(q.flops / q.time_us * 1e6) : "\u2013",
    (q.smem_wavefronts_ideal > 0 ? q.smem_wavefronts / q.smem_wavefronts_ideal : 1).toFixed(2) + "\u00a0×",
    q.tile, q.warps, q.stages, q.registers_per_thread, bytes(q.spill_bytes_per_thread), q.ctas_per_sm, q.bound];
  const where = section("points").select("table");
  table(where, heads, points.map((q) => (q.refused === "" ? cells(q) : [nameOf(q)])));
  where.selectAll("tbody tr").data(points).filter((q) => q.refused !== "").append("td").attr({ colspan: heads.length - 1, class: "formula" }).text((q) => q.refused);
}

[drawSweepCards, drawCurves, drawBounds, drawSteps, drawInside, drawThread, drawPoints].forEach((draw) => draw());
d3.select("footer").text(`attest predict ${data.command} --sweep ${field}=${points.length > 20 ? "\u2026" : points.map((q) => q.value).join(",")} \u2013 simulated, not measured; docs/simulator.md says what supports each model.`);
