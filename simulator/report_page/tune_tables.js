// The ranking as a table, why the first wins, and what was skipped.
function drawTuneCards() {
  const w = winner;
  card(time(w.time_us), "time of the winner", formulaOf("time_us"));
  card(w.time_us > 0 ? flopRate(data.flops / w.time_us * 1e6) : "\u2013", "of needed arithmetic", formulaOf("flop_rate"));
  card(w.bound, "binds", formulaOf("bound"));
  card(`${w.tile_m} × ${w.tile_n}`, `tile; ${data.cores ? "" : plural(w.warps, "warp") + ", "}${plural(w.stages, "stage")}`, w.extras || "nothing beside the tile");
  card(bytes(w.dram_bytes), "through DRAM", formulaOf("dram_bytes"));
  if (data.cores) return;
  card(bytes(w.spill_bytes), "spilled a thread", `in each key tile: ${formulaOf("spill_bytes_per_thread")}`);
  card(`${w.ctas}`, `${w.ctas === 1 ? "CTA" : "CTAs"} an SM; limit: ${w.limit}`, `${w.ctas * w.warps} of ${data.max_warps_per_sm} warps`);
  card(times(w.conflicts), "shared-memory wavefronts", formulaOf("conflicts"));
}

function drawRanking() {
  const rows = plans.filter((p, i) => i < data.top || p.named), left = plans.length - rows.length;
  say("ranking", `The first ${Math.min(data.top, plans.length)} and the named plans` +
    (left > 0 ? `; ${plural(left, "more plan")} that fit ${left === 1 ? "is" : "are"} in the charts.` : "."));
  // what a multiprocessor has and cube and vector cores have not stands between
  const ofMultiprocessor = (cells) => (data.cores ? [] : cells);
  const heads = [["", "number"], ["tile"], ["time", "number"], ["× first", "number"], ...ofMultiprocessor([["warps", "number"]]), ["stages", "number"], ["DRAM", "number"],
    ["from L2", "number"], [data.cores ? "unified buffer" : "shared a CTA", "number"],
    ...ofMultiprocessor([["registers", "number"], ["spill", "number"], ["conflicts", "number"], ["CTAs × warps an SM", "number"]]), ["bound"], ["beside the tile"]];
  const where = section("ranking").select("table");
  table(where, heads, rows.map((p) => [p.rank, `${p.named ? p.name + ", " : ""}${p.tile_m} × ${p.tile_n}`, time(p.time_us), times(ratio(p)), ...ofMultiprocessor([p.warps]), p.stages,
    bytes(p.dram_bytes), bytes(p.l2_read_bytes), bytes(p.smem_bytes), ...ofMultiprocessor([p.registers, bytes(p.spill_bytes), times(p.conflicts), `${p.ctas} × ${p.warps}`]),
    p.bound, p.extras || "\u2013"]));
  where.selectAll("tbody tr").data(rows).classed("wins", (p) => p === winner).classed("named", (p) => p.named)
    .style("--key", (p) => colorOf(p));
}

function drawWhy() {
  section("why").select("ul").selectAll("li").data(data.why).enter().append("li").text(String);
}

function drawSkipped() {
  const { skipped } = data, all = d3.sum(skipped, (s) => s.count);
  if (all === 0) return say("skipped", "Every plan that was tried fits this device.");
  say("skipped", `${plural(all, "plan")} of ${grouped(all + plans.length)} cannot run here.`);
  chart(section("skipped").select(".chart"), "Plans that were skipped, by reason", (svg, width) => {
    const e = em(), pitch = 2.6 * e, x = d3.scale.linear().domain([0, all]).range([0, width - 4 * e]);
    skipped.forEach((s, i) => {
      textAt(svg, 0, i * pitch + 0.9 * e, s.reason, { anchor: "start" });
      tip(svg.append("rect").attr({ x: 0, y: i * pitch + 1.15 * e, width: Math.max(2, x(s.count)), height: 0.95 * e, fill: "#8c959f" }), `${s.count}: ${s.reason}`, "plans that were tried and do not fit, each counted for its first reason");
      textAt(svg, x(s.count) + 0.4 * e, i * pitch + 1.95 * e, s.count, { anchor: "start", width });
    });
    return skipped.length * pitch + 0.2 * e;
  });
  table(section("skipped").select("table"), [["reason"], ["for example"], ["why", "formula"]], skipped.map((s) => [s.reason, s.example, s.detail]));
}
