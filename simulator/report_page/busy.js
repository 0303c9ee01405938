// How busy each resource is over the kernel's time.
function drawBusy() {
  const rows = Object.entries(predict.utilisation).map(([name, fraction]) => ({ name, fraction }));
  rows.sort((a, b) => b.fraction - a.fraction);
  if (rows.length === 0) return say("busy", "Nothing is computed.");
  say("busy", predict.bound === "latency"
    ? "No resource reaches a third of its peak: waiting binds. Each bar is a share of the resource's peak."
    : `${capital(rows[0].name)} is the busiest. Each bar is a share of the resource's peak, averaged over the kernel.`);
  chart(section("busy").select(".chart"), "Share of each resource's peak", (svg, width) => {
    const e = em(), left = 8 * e, right = 3.6 * e, pitch = 2.1 * e;
    const x = d3.scale.linear().domain([0, 1]).range([left, width - right]);
    rows.forEach((row, i) => {
      const y = i * pitch + 0.4 * e;
      svg.append("rect").attr({ x: left, y, width: x(1) - left, height: 1.3 * e, fill: "#eaeef2" });
      const bar = svg.append("rect").attr({ x: left, y, width: Math.max(1, x(Math.min(1, row.fraction)) - left), height: 1.3 * e,
        fill: row.name === predict.bound ? colors.fused : "#8fb9d6" });
      tip(bar, `${row.name}: ${percent(row.fraction)} of its peak`);
      textAt(svg, left - 0.5 * e, y + 0.95 * e, row.name, { anchor: "end", cls: row.name === predict.bound ? "strong" : "" });
      textAt(svg, x(1) + 0.4 * e, y + 0.95 * e, percent(row.fraction), { anchor: "start" });
    });
    return rows.length * pitch + 0.5 * e;
  });
}
