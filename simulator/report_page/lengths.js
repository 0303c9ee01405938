// Time and DRAM bytes of the same kernel at other lengths.
function drawLengths() {
  const { points, why_none } = data.lengths, p = predict.case;
  if (points.length === 0) return say("lengths", `No curve: ${why_none}.`);
  const square = points.every((q) => q.seqlen_q === q.seqlen_k);
  const here = points.find((q) => q.seqlen_k === p.seqlen_k) || points[0], last = points[points.length - 1];
  const faster = (q) => (q.unfused_time_us / q.time_us).toFixed(1);
  say("lengths", `The same plan${square ? "" : `, ${plural(here.seqlen_q, "query").replace("querys", "queries")} a head and more or fewer keys`}: ` +
    `unfused takes ${faster(points[0])} × as long at ${tokens(points[0].seqlen_k)}, ${faster(last)} × at ${tokens(last.seqlen_k)} ` +
    `(launches included). Logarithmic axes; this case is the filled point.` +
    (points.some((q) => q.dram_bytes < q.compulsory_bytes) ? " Fewer bytes than compulsory: what is written is still in L2 when a short kernel ends." : ""));
  legend("lengths", [
    { color: colors.fused, kind: "line", text: "fused" },
    { color: colors.unfused, kind: "line", text: "unfused" },
    { color: colors.good, kind: "line dashed", text: "compulsory bytes" },
  ]);
  const panels = section("lengths").select(".chart").classed("panels", true);
  draw("Time", time, [["time_us", colors.fused], ["unfused_time_us", colors.unfused]]);
  draw("DRAM bytes", bytes, [["dram_bytes", colors.fused], ["unfused_dram_bytes", colors.unfused],
    ["compulsory_bytes", colors.good, "3 4"]]);

  function draw(title, format, series) {
    chart(panels.append("div"), title + " against sequence length", (svg, width) => {
      const e = em(), box = { left: 4.8 * e, top: 2.6 * e, width: width - 6 * e, height: 12 * e };
      const lengths = points.map((q) => q.seqlen_k);
      const values = d3.merge(series.map(([field]) => points.map((q) => q[field]))).filter((v) => v > 0);
      const yDomain = [d3.min(values) / 1.6, d3.max(values) * 1.6];
      const x = d3.scale.log().base(2).domain([d3.min(lengths) / 1.15, d3.max(lengths) * 1.15]).range([box.left, box.left + box.width]);
      const y = d3.scale.log().domain(yDomain).range([box.top + box.height, box.top]);
      const every = Math.ceil(lengths.length * 3.2 * e / box.width);
      const yTicks = title === "Time" ? rounds(yDomain, 10, 6) : rounds(yDomain, 4, 6);
      axes(svg, box, x, y, { xTicks: lengths.filter((_, i) => i % every === 0), yTicks, xFormat: tokens, yFormat: (v) => brief(format(v)),
        xLabel: square ? "tokens" : "keys", yLabel: title });
      series.forEach(([field, color, dash]) => {
        const shown = points.filter((q) => q[field] > 0);
        svg.append("path").datum(shown).attr({ fill: "none", stroke: color, "stroke-width": 2.5, "stroke-dasharray": dash,
          d: d3.svg.line().x((q) => x(q.seqlen_k)).y((q) => y(q[field])) });
        if (dash) return;
        const dots = svg.append("g").selectAll("circle").data(shown).enter().append("circle").attr({
          cx: (q) => x(q.seqlen_k), cy: (q) => y(q[field]), r: 0.28 * e, stroke: color, "stroke-width": 2,
          fill: (q) => (q === here ? color : "#fff") });
        dots.append("title").text((q) => `${tokens(q.seqlen_k)}: ${format(q[field])}; fused bound by ${q.bound}`);
      });
      return box.top + box.height + 2.8 * e;
    });
  }
}
