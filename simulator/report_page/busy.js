// How busy each resource is over the kernels' time, fused above unfused; and the kernels of both paths, one after the
// other.
function drawBusy() {
  const of = (path, name) => path.utilisation[name] || 0;
  const rows = Object.keys(predict.utilisation).map((name) => ({ name, fraction: of(predict, name), unfused: of(predict.unfused, name) }));
  rows.sort((a, b) => b.fraction - a.fraction);
  if (rows.length === 0) return say("busy", "Nothing is computed.");
  const busiest = predict.bound === "latency" ? "No resource reaches a third of its peak: waiting binds" : `${capital(rows[0].name)} is the busiest`;
  say("busy", `${busiest}. Each bar is a share of the resource's peak, averaged over the kernel; below it that of the unfused ` +
    `kernels together, bound by ${predict.unfused.bound}.`);
  chart(section("busy").select(".chart").append("div"), "Share of each resource's peak", (svg, width) => {
    const e = em(), left = 8 * e, right = 3.6 * e, pitch = 2.4 * e;
    const x = d3.scale.linear().domain([0, 1]).range([left, width - right]);
    rows.forEach((row, i) => {
      const y = i * pitch + 0.4 * e;
      svg.append("rect").attr({ x: left, y, width: x(1) - left, height: 1.3 * e, fill: "#eaeef2" });
      const bar = svg.append("rect").attr({ x: left, y, width: Math.max(1, x(Math.min(1, row.fraction)) - left), height: 1.3 * e,
        fill: row.name === predict.bound ? colors.fused : "#8fb9d6" });
      tip(bar, `${row.name}: ${percent(row.fraction)} of its peak`, formulaOf(row.name));
      const below = svg.append("rect").attr({ x: left, y: y + 1.35 * e, width: Math.max(1, x(Math.min(1, row.unfused)) - left), height: 0.4 * e,
        fill: colors.unfused, "fill-opacity": 0.7 });
      tip(below, `${row.name}, unfused: ${percent(row.unfused)} of its peak`, formulaOf(row.name));
      textAt(svg, left - 0.5 * e, y + 0.95 * e, row.name, { anchor: "end", cls: row.name === predict.bound ? "strong" : "" });
      textAt(svg, x(1) + 0.4 * e, y + 0.95 * e, percent(row.fraction), { anchor: "start" });
    });
    return rows.length * pitch + 0.5 * e;
  });
}

function drawKernels() {
  const launch = data.device.launch_overhead_us, unfused = predict.unfused.steps;
  if (predict.time_us === 0) return;
  const rows = [
    { name: "fused", color: colors.fused, kernels: [{ name: launches(predict.kernels), made: "launched_time_us", time_us: predict.time_us + predict.kernels * launch }] },
    { name: "unfused", color: colors.unfused, kernels: unfused },
  ];
  chart(section("busy").select(".chart").append("div"), "Kernels of both paths in time, launches included", (svg, width) => {
    const e = em(), left = 8 * e, top = 3 * e, pitch = 3.9 * e;
    const longest = d3.max(rows, (row) => d3.sum(row.kernels, (k) => k.time_us));
    const x = d3.scale.linear().domain([0, longest]).range([0, width - left]);
    textAt(svg, 0, 2.1 * e, "Kernels in time, launches included", { anchor: "start", cls: "strong" });
    rows.forEach((row, i) => {
      const y = top + i * pitch, total = d3.sum(row.kernels, (k) => k.time_us);
      textAt(svg, left - 0.5 * e, y + 0.95 * e, row.name, { anchor: "end" });
      let from = left;
      row.kernels.forEach((kernel, k) => {
        const bar = svg.append("rect").attr({ x: from, y, width: Math.max(1, x(kernel.time_us) - 2), height: 1.3 * e, fill: row.color,
          "fill-opacity": k % 2 ? 0.6 : 0.9 });
        tip(bar, `${kernel.name}: ${time(kernel.time_us)}` + (kernel.bound ? `, bound by ${kernel.bound}: ` +
          Object.entries(kernel.utilisation).map(([name, f]) => `${name} ${percent(f)}`).join(", ") : ""), formulaOf(kernel.made || "unfused_kernel"));
        from += x(kernel.time_us);
      });
      const parts = row.kernels.length > 1 ? ": " + row.kernels.map((k) => time(k.time_us)).join(" + ") : "";
      textAt(svg, left, y + 2.35 * e, time(total) + parts, { anchor: "start", cls: "soft", width });
    });
    return top + 2 * pitch - 0.8 * e;
  });
}
