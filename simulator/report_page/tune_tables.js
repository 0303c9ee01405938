// The ranking as a table, why the first wins, and what was skipped.
function drawTuneCards() {
  const w = winner;
  card(time(w.time_us), "time of the winner", "cycles / SM clock; a launch is not in it");
  card(w.time_us > 0 ? flopRate(data.flops / w.time_us * 1e6) : "\u2013", "of needed arithmetic", "2 × (headdim + headdim_v) × pairs that the mask leaves / time");
  card(w.bound, "binds", "the resource with the largest share of its peak; latency if none reaches a third");
  card(`${w.tile_m} × ${w.tile_n}`, `tile; ${plural(w.warps, "warp")}, ${plural(w.stages, "stage")}`, w.extras || "nothing beside the tile");
  card(bytes(w.dram_bytes), "through DRAM", "read and written while the kernel runs");
  if (data.device.sms) card(bytes(w.spill_bytes), "spilled a thread", "in each key tile; what a compiler cannot do without beyond the limit");
  if (data.device.sms) card(`${w.ctas}`, `${w.ctas === 1 ? "CTA" : "CTAs"} an SM; limit: ${w.limit}`, `${w.ctas * w.warps} of ${data.max_warps_per_sm} warps`);
  if (data.device.sms) card(times(w.conflicts), "shared-memory wavefronts", "over those without bank conflicts");
}

function drawRanking() {
  const rows = plans.filter((p, i) => i < data.top || p.named), left = plans.length - rows.length;
  const warps = (p) => (data.device.sms ? `${p.ctas} × ${p.warps}` : "\u2013");
  say("ranking", `The first ${Math.min(data.top, plans.length)} and the named plans` +
    (left > 0 ? `; ${plural(left, "more plan")} that fit ${left === 1 ? "is" : "are"} in the charts.` : "."));
  const heads = [["", "number"], ["tile"], ["time", "number"], ["× first", "number"], ["warps", "number"], ["stages", "number"], ["DRAM", "number"],
    ["from L2", "number"], ["shared a CTA", "number"], ["registers", "number"], ["spill", "number"], ["conflicts", "number"], ["CTAs × warps an SM", "number"],
    ["bound"], ["beside the tile"]];
  const where = section("ranking").select("table");
  table(where, heads, rows.map((p) => [p.rank, `${p.named ? p.name + ", " : ""}${p.tile_m} × ${p.tile_n}`, time(p.time_us), times(ratio(p)), p.warps, p.stages,
    bytes(p.dram_bytes), bytes(p.l2_read_bytes), bytes(p.smem_bytes), p.registers, bytes(p.spill_bytes), times(p.conflicts), warps(p), p.bound, p.extras || "\u2013"]));
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
      tip(svg.append("rect").attr({ x: 0, y: i * pitch + 1.15 * e, width: Math.max(2, x(s.count)), height: 0.95 * e, fill: "#8c959f" }), `${s.count}: ${s.reason}`);
      textAt(svg, x(s.count) + 0.4 * e, i * pitch + 1.95 * e, s.count, { anchor: "start", width });
    });
    return skipped.length * pitch + 0.2 * e;
  });
  table(section("skipped").select("table"), [["reason"], ["for example"], ["why", "formula"]], skipped.map((s) => [s.reason, s.example, s.detail]));
}
