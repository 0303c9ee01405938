// Bytes from DRAM (HBM) through L2 and shared memory to registers and back, fused beside unfused, in one scale.
function drawFlow() {
  const { fused, unfused } = data.flow;
  const moved = (f) => f.dram_read + f.dram_write;
  const lanes = [
    { name: `fused: ${launches(predict.kernels)}`, ways: [
      { read: [fused.dram_read], write: [fused.dram_write], what: "DRAM and L2", made: ["dram_read_bytes", "dram_write_bytes"] },
      { read: [fused.l2_read, fused.sm_read], write: [fused.sm_write], what: data.cores ? "L2 and the cores" : "L2 and shared memory",
        made: ["l2_read_bytes", "sm_write_bytes", "sm_read_bytes"] },
      fused.shared_read === undefined ? null
        : { read: [fused.shared_read], write: [fused.shared_write], what: "shared memory and registers", made: ["shared_read", "shared_write"] } ] },
    { name: `unfused: ${predict.unfused.kernels} kernels, S and P go through DRAM`, ways: [
      { read: [unfused.dram_read], write: [unfused.dram_write], what: "DRAM and L2", made: ["unfused_dram_read_bytes", "unfused_dram_write_bytes"] },
      { read: [unfused.l2_read], write: [unfused.sm_write], what: `L2 and the ${data.cores ? "cores" : "SMs"}`, made: ["unfused_l2_read_bytes", "unfused_sm_write"] },
      null ] },
  ];
  const most = d3.max(lanes, (lane) => d3.max(lane.ways, (way) => way && d3.max(way.read.concat(way.write)))) || 1;
  say("flow", `DRAM carries ${bytes(moved(fused))} for the fused path and ${bytes(moved(unfused))} for the unfused ` +
    "path. Bands are as thick as the bytes they carry, in one scale, but never thinner than a hair.");
  legend("flow", [
    { color: colors.read, text: "read, towards the registers" },
    { color: colors.write, text: "written, towards DRAM" },
  ].concat(fused.dirty_left > 0 ? [{ color: "#fff", text: `${bytes(fused.dirty_left)} more is still in L2 at the end` }] : []));

  chart(section("flow").select(".chart"), "Bytes moved between DRAM, L2, shared memory and registers", (svg, width) => {
    const e = em(), beside = width >= 800, gap = 3 * e;
    const laneWidth = beside ? (width - gap) / 2 : width, laneHeight = 15.5 * e;
    lanes.forEach((lane, i) => {
      const at = beside ? [i * (laneWidth + gap), 0] : [0, i * (laneHeight + e)];
      drawLane(svg.append("g").attr("transform", `translate(${at})`), lane, laneWidth, laneHeight);
    });
    return beside ? laneHeight : 2 * laneHeight + e;
  });

  function drawLane(g, lane, width, height) {
    const e = em(), node = 0.8 * e, names = ["DRAM", "L2", lane.ways[2] ? "shared" : data.cores ? "cores" : "SMs", "registers"], top = 3.2 * e;
    const inset = 1.7 * e, pitch = (width - 2 * inset) / 3, center = (i) => inset + i * pitch;
    textAt(g, 0, 0.9 * e, lane.name, { anchor: "start", cls: "strong" });
    names.forEach((name, i) => {
      if (i > 1 && !lane.ways[i - 1]) return;
      g.append("rect").attr({ x: center(i) - node / 2, y: top, width: node, height: height - top, rx: 3, fill: colors.soft });
      textAt(g, center(i), top - 0.5 * e, name, { cls: "soft", width });
    });
    lane.ways.forEach((way, i) => {
      const x0 = center(i) + node / 2, x1 = center(i + 1) - node / 2;
      if (!way) {
        textAt(g, (x0 + width) / 2, (top + height) / 2, "no model below", { cls: "soft", width });
        return;
      }
      drawBand(g, x0, x1, top + 0.30 * (height - top), way.read, colors.read, "\u2192", way, "read");
      drawBand(g, x0, x1, top + 0.78 * (height - top), way.write, colors.write, "\u2190", way, "written");
    });
  }

  /// Two figures: what leaves on the left and what arrives on the right, where requests merge between.
  function drawBand(g, x0, x1, y, figures, color, arrow, way, verb) {
    const e = em(), first = figures[0], last = figures[figures.length - 1];
    const half = (v) => (v > 0 ? Math.max(1, (v / most) * 2.1 * e) : 0);
    const a = half(first), b = half(last);
    const band = g.append("path").attr({ fill: color, "fill-opacity": 0.75,
      d: `M${x0},${y - a}L${x1},${y - b}L${x1},${y + b}L${x0},${y + a}Z` });
    const apart = figures.length > 1 && Math.abs(last - first) > 0.02 * last;
    const [read, written, asked] = way.made;
    tip(band, `${verb} between ${way.what}: ${bytes(first)}`, formulaOf(verb === "read" ? read : written) +
      (apart ? `;\nthe SMs ask for ${bytes(last)}\n= ${formulaOf(asked)}` : ""));
    const label = bytes(first);
    const above = y - Math.max(a, b) - 0.35 * e;
    textAt(g, (x0 + x1) / 2, above, arrow === "\u2192" ? label + "\u202f" + arrow : arrow + "\u202f" + label);
    if (apart && x1 - x0 > 8 * e) textAt(g, (x0 + x1) / 2, y + Math.max(a, b) + 0.95 * e, `SMs ask ${bytes(last)}`, { cls: "soft" });
  }
}
