// Time and DRAM bytes of the same kernel at other lengths.
function drawLengths() {
  const { points, why_none } = data.lengths, p = predict.case;
  if (points.length === 0) return say("lengths", `No curve: ${why_none}.`);
  const square = points.every((q) => q.seqlen_q === q.seqlen_k);
  const here = points.find((q) => q.seqlen_k === p.seqlen_k) || points[0], last = points[points.length - 1];
  const faster = (q) => (q.unfused_time_us / q.launched_time_us).toFixed(1);
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
  draw("Time", time, [["launched_time_us", colors.fused], ["unfused_time_us", colors.unfused]]);
  draw("DRAM bytes", bytes, [["dram_bytes", colors.fused], ["unfused_dram_bytes", colors.unfused],
    ["compulsory_bytes", colors.good, "3 4"]]);

  function draw(title, format, series) {
    const lengths = points.map((q) => q.seqlen_k);
    curve(panels.append("div"), points, { title, label: `${title} against sequence length`, xOf: (q) => q.seqlen_k, series, format, logX: true,
      logY: true, binary: title !== "Time", xTicks: lengths, xFormat: tokens, xLabel: square ? "tokens" : "keys", filled: (q) => q === here,
      tip: (q, text) => `${tokens(q.seqlen_k)}: ${text}; fused bound by ${q.bound}` });
  }
}
