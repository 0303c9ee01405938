// Arithmetic rate over arithmetic intensity, with the roofs of DRAM, L2 and the matrix unit.
function drawRoofline() {
  const { roofs } = data, unfused = predict.unfused, us = 1e-6;
  const rate = (flops, time_us) => flops / (time_us * us);
  const dram = predict.dram_read_bytes + predict.dram_write_bytes;
  const points = [
    { text: "fused, by its DRAM bytes", flops: predict.flops, bytes: dram, time: predict.time_us, color: colors.fused, made: ["dram_bytes", "time_us"] },
    { text: "fused, by its L2 bytes", flops: predict.flops, bytes: predict.l2_read_bytes + predict.sm_write_bytes,
      time: predict.time_us, color: colors.fused, hollow: true, made: ["l2_read_bytes", "time_us"] },
    { text: "unfused, by its DRAM bytes", flops: predict.flops, bytes: unfused.dram_read_bytes + unfused.dram_write_bytes,
      time: unfused.time_us, color: colors.unfused, made: ["unfused_dram_bytes", "unfused_time_us"] },
  ].filter((p) => p.flops > 0 && p.bytes > 0 && p.time > 0);
  points.forEach((p) => { p.intensity = p.flops / p.bytes; p.rate = rate(p.flops, p.time); });
  if (points.length === 0) return say("roofline", "No arithmetic, no roofline.");
  const peak = d3.max(roofs.tensor, (t) => t.flops_per_second);
  const slopes = [
    { name: "DRAM", speed: roofs.dram_bytes_per_second, dash: null },
    { name: "L2", speed: roofs.l2_bytes_per_second, dash: "6 4" },
  ];
  const first = points[0], ridge = peak / slopes[0].speed;
  say("roofline", `The fused kernel computes ${intensity(first.intensity)} FLOP for each byte of ` +
    `DRAM, ${first.intensity < ridge ? "left" : "right"} of the ridge at ${intensity(ridge)}: ` +
    (first.intensity < ridge ? "DRAM would bind before the matrix unit. " : "DRAM is not what limits it. ") +
    "Only pairs that the mask leaves count. Both axes are logarithmic.");
  legend("roofline", points.map((p) => ({ color: p.hollow ? "#fff" : p.color, kind: "round",
    text: `${p.text}: ${intensity(p.intensity)} FLOP/B, ${flopRate(p.rate)}` })).concat(
    // too near the highest roof for a label of their own
    roofs.tensor.filter((t) => t.flops_per_second < peak).map((t) => ({ color: "#8c959f", kind: "line", text: `${t.name}: ${flopRate(t.flops_per_second)}` }))));

  chart(section("roofline").select(".chart"), "Roofline", (svg, width) => {
    const e = em(), box = { left: 4.2 * e, top: 2.6 * e, width: width - 6 * e, height: 15 * e };
    const decade = (x, up) => Math.pow(10, up ? Math.ceil(Math.log10(x) + 0.1) : Math.floor(Math.log10(x) - 0.1));
    const xDomain = [decade(Math.min(d3.min(points, (p) => p.intensity), ridge / 30), false),
                     decade(Math.max(d3.max(points, (p) => p.intensity), ridge), true)];
    const yDomain = [decade(Math.min(d3.min(points, (p) => p.rate), peak / 300), false), decade(peak, true)];
    const x = d3.scale.log().domain(xDomain).range([box.left, box.left + box.width]);
    const y = d3.scale.log().domain(yDomain).range([box.top + box.height, box.top]);
    axes(svg, width, box, x, y, { xTicks: powers(xDomain, 10, 8), yTicks: powers(yDomain, 10, 7),
      xFormat: (t) => (t < 1 ? String(t) : grouped(t)), yFormat: (t) => brief(count(t)), xLabel: "FLOP per byte", yLabel: "FLOP/s" });
    const taken = points.map((p) => [x(p.intensity), y(p.rate)]);
    /// The first place along a roof, from (x0, y0) to (x1, y1), where no point is near; the label stands beside it.
    const labelAt = (x0, y0, x1, y1, text, below) => {
      const angle = Math.atan2(y1 - y0, x1 - x0), half = 0.2 * e * text.length;
      const free = (f) => taken.every(([px, py]) => Math.hypot(px - x0 - f * (x1 - x0), py - y0 - f * (y1 - y0)) > half + 0.8 * e);
      const length = Math.hypot(x1 - x0, y1 - y0), places = d3.range(0.1, 0.95, 0.05).filter((f) => f * length > half && (1 - f) * length > half);
      const f = places.find(free) || places[0] || 0.5;
      const place = `translate(${x0 + f * (x1 - x0)},${y0 + f * (y1 - y0)}) rotate(${angle * 180 / Math.PI})`;
      svg.append("text").attr({ transform: `${place} translate(0,${(below ? 1.05 : -0.4) * e})`, "text-anchor": "middle", class: "halo" }).text(text);
    };
    slopes.forEach((s, i) => {
      const from = Math.max(xDomain[0], yDomain[0] / s.speed), to = Math.min(xDomain[1], peak / s.speed);
      if (from >= to) return;
      const ends = [x(from), y(from * s.speed), x(to), y(to * s.speed)];
      const roof = svg.append("line").attr({ x1: ends[0], y1: ends[1], x2: ends[2], y2: ends[3], stroke: colors.ink,
        "stroke-width": 1.5, "stroke-dasharray": s.dash });
      tip(roof, `${s.name}: ${byteRate(s.speed)}`, `FLOP per byte × ${s.name}'s rate, of the device's file`);
      labelAt(...ends, `${s.name} ${byteRate(s.speed)}`, i === 0);
    });
    roofs.tensor.forEach((t) => {
      const highest = t.flops_per_second === peak;
      const start = x(Math.max(xDomain[0], t.flops_per_second / d3.max(slopes, (s) => s.speed))), at = y(t.flops_per_second);
      const roof = svg.append("line").attr({ x1: start, x2: x(xDomain[1]), y1: at, y2: at, stroke: colors.ink, "stroke-width": 1.5,
        "stroke-opacity": highest ? 1 : 0.5 });
      tip(roof, `${t.name}: ${flopRate(t.flops_per_second)}`, formulaOf("matrix_roof"));
      if (highest) textAt(svg, x(xDomain[1]), at - 0.4 * e, `${t.name} ${flopRate(t.flops_per_second)}`, { anchor: "end", cls: "halo", width });
    });
    points.forEach((p) => {
      const dot = svg.append("circle").attr({ cx: x(p.intensity), cy: y(p.rate), r: 0.42 * e, fill: p.hollow ? "#fff" : p.color,
        stroke: p.color, "stroke-width": 2.5 });
      const [moved, taken_us] = p.made;
      tip(dot, `${p.text}: ${intensity(p.intensity)} FLOP/B, ${flopRate(p.rate)}`,
        `needed arithmetic / bytes, and / time;\nneeded arithmetic = ${formulaOf("flops")};\nbytes = ${formulaOf(moved)};\ntime = ${formulaOf(taken_us)}`);
    });
    return box.top + box.height + 2.8 * e;
  });
}
