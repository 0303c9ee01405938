// What a thread's registers hold, against what it may have; and how many CTAs an SM takes.
function drawRegisters() {
  const r = data.registers;
  const shades = { O: "#0072b2", S: "#009e73", Q: "#e69f00", P: "#56b4e9", copies: "#d55e00", rows: "#cc79a7", other: "#8c959f" };
  const tile = predict.plan, other_words = r.known ? "what its compiler gave, less the parts beside it"
    : "what a compiler keeps beside them: up to 26 for addresses and bounds, tile_n / 4 of K's fragments and 6 for each of 8 steps of a head, less where they lack";
  const blocks = `${tile.tile_m} rows / ${tile.num_warps} warps / 16`;
  const made = { O: `${blocks} × headdim_v / 2`, S: `${blocks} × ${tile.tile_n} keys / 2`,
    Q: `4 × ${blocks} × ${tile.q_in_registers ? "all steps of a head" : "2 steps of a head"}`, P: `${blocks} × ${tile.tile_n} keys × ${tile.element_bytes} bytes / 8`,
    copies: "words of a tile of K or V / threads", rows: `4 × ${blocks}`, other: other_words };
  const holds = { O: "accumulators of O", S: "accumulators of S, then P", Q: "fragments of Q", P: "P beside the next S",
    copies: "K and V on their way", rows: "maximum and sum of each row",
    other: "addresses, fragments in flight, temporaries" };
  // Beside what the tiles take, a compiler that lacks room makes do with less, and the one that made the plan with what it had.
  const held = d3.sum(r.parts.filter(([name]) => name !== "other"), ([, n]) => n);
  const other = r.known ? Math.max(0, r.given - held) : Math.max(r.least, Math.min(r.demand, r.limit)) - held;
  const parts = r.parts.map(([name, n]) => [name, name === "other" ? other : n]).filter(([, n]) => n > 0);
  const needed = held + other, spill = 4 * r.spill_words, parked = 4 * r.parked_words;
  say("registers", `${r.given} a thread${r.known ? ", as its compiler made it" : ", estimated"}, of at most ${r.limit}; ` +
    (spill > 0 ? `${bytes(spill)} a thread are spilled in each key tile` : "nothing is spilled in a key tile") +
    (parked > 0 ? `, ${bytes(parked)} once a CTA.` : "."));
  legend("registers", parts.map(([name, n]) => ({ color: shades[name], text: `${n} ${holds[name]}` })));
  chart(section("registers").select(".chart"), "Registers of a thread by what they hold", (svg, width) => {
    const e = em(), top = 2 * e, height = 2.6 * e, most = Math.max(r.limit, needed) * 1.04;
    const x = d3.scale.linear().domain([0, most]).range([0, width]);
    let from = 0;
    svg.append("rect").attr({ x: 0, y: top, width: x(r.limit), height, fill: "#eaeef2" });
    parts.forEach(([name, n]) => {
      const bar = svg.append("rect").attr({ x: x(from), y: top, width: x(n) - 1, height, fill: shades[name] });
      tip(bar, `${n} registers: ${holds[name]}`, made[name]);
      const room = Math.min(n, r.limit - from);  // for its name
      if (x(room) > (name.length * 0.5 + 2.4) * e)
        textAt(svg, x(from + room / 2), top + 1.6 * e, `${name} ${n}`, {}).style("fill", "#fff");
      from += n;
    });
    svg.append("line").attr({ x1: x(r.limit), x2: x(r.limit), y1: top - 0.4 * e, y2: top + height + 0.4 * e, stroke: colors.bad, "stroke-width": 2.5 });
    textAt(svg, x(r.limit), top - 0.7 * e, `limit ${r.limit}`, { anchor: "end", width });
    if (needed > r.limit)
      tip(svg.append("rect").attr({ x: x(r.limit), y: top, width: x(needed) - x(r.limit), height, fill: colors.bad, "fill-opacity": 0.45 }),
        `${needed - r.limit} registers more than there are`, `${needed} needed - ${r.limit}, the registers of an SM / its threads or what the architecture allows`);
    const below = r.known ? `${r.given} given` : `${r.demand} asked for, ${r.least} needed at least`;
    textAt(svg, x(needed), top + height + 1.2 * e, below, { anchor: "end", cls: "soft", width });
    if (needed <= r.limit) return top + height + 1.8 * e;
    const stored = [[r.spill_words, "a key tile"], [r.parked_words, "a CTA"]].filter(([words]) => words > 0);
    const lacking = stored.map(([words, when]) => `${words} words spilled ${when}`);
    textAt(svg, x(needed), top + height + 2.4 * e, [`${needed - r.limit} too many`, ...lacking].join(", "), { anchor: "end", cls: "soft", width });
    return top + height + 3 * e;
  });
}

/// Of a device of cube and vector cores, which has buffers where a GPU has registers and shared memory.
function drawBuffers() {
  section("registers").select("h2").text("Buffers");
  say("registers", "What a query tile takes of each buffer. " + data.buffers.map((b) => `${capital(b.name)}: ${b.holds}.`).join(" "));
  chart(section("registers").select(".chart"), "Buffers", (svg, width) => {
    const e = em(), left = 8 * e, pitch = 2.9 * e, right = 3.6 * e;
    data.buffers.forEach((b, i) => {
      const y = i * pitch + 0.2 * e, full = width - left - right, share = b.used / b.capacity;
      textAt(svg, left - 0.5 * e, y + 0.95 * e, b.name, { anchor: "end" });
      svg.append("rect").attr({ x: left, y, width: full, height: 1.2 * e, fill: "#eaeef2" });
      const bar = svg.append("rect").attr({ x: left, y, width: Math.max(1, full * Math.min(1, share)), height: 1.2 * e, fill: colors.fused });
      tip(bar, `${b.name}: ${bytes(b.used)} of ${bytes(b.capacity)}, ${b.holds}`, b.made);
      textAt(svg, left + full + 0.4 * e, y + 0.95 * e, percent(share), { anchor: "start" });
      textAt(svg, left, y + 2.15 * e, `${bytes(b.used)} of ${bytes(b.capacity)}`, { anchor: "start", cls: "soft", width });
    });
    return data.buffers.length * pitch;
  });
}

function drawOccupancy() {
  const o = data.occupancy, most = d3.max(o.limits, (l) => Math.min(l.ctas, 32));
  say("occupancy", `${plural(o.ctas_per_sm, "CTA")} of ${plural(o.warps_per_cta, "warp")}: ` +
    `${o.ctas_per_sm * o.warps_per_cta} of ${o.max_warps} warps. What limits them: ${o.limit}.`);
  chart(section("occupancy").select(".chart"), "CTAs an SM, by what limits them", (svg, width) => {
    const e = em(), left = 7 * e, right = 2.2 * e, pitch = 2.9 * e;
    const cell = Math.min(1.6 * e, (width - left - right) / most);
    o.limits.forEach((l, i) => {
      const y = i * pitch, binds = l.what === o.limit;
      textAt(svg, left - 0.5 * e, y + 1.1 * e, l.what, { anchor: "end", cls: binds ? "strong" : "" });
      d3.range(Math.min(l.ctas, 32)).forEach((k) => {
        const box = svg.append("rect").attr({ x: left + k * cell, y: y + 0.2 * e, width: cell - 2, height: 1.2 * e,
          fill: k < o.ctas_per_sm ? colors.fused : "#cfe3f1", stroke: binds ? colors.bad : "none", "stroke-width": 1.5 });
        tip(box, `CTA ${k + 1} of ${l.ctas} that ${l.what} would allow`, `${l.what} of an SM / those of a CTA, rounded down` +
          (l.what === "registers" ? ", in whole allocation units of a warp" : l.what === "shared memory" ? " and with what the system reserves" : ""));
      });
      textAt(svg, left + Math.min(l.ctas, 32) * cell + 0.3 * e, y + 1.15 * e, l.ctas, { anchor: "start", cls: binds ? "strong" : "" });
      const amount = (v) => (l.unit === "B" ? bytes(v) : grouped(v));
      textAt(svg, left, y + 2.3 * e, `${amount(l.a_cta)} a CTA, ${amount(l.an_sm)}${l.unit === "B" ? "" : " " + l.unit} an SM`,
        { anchor: "start", cls: "soft", width });
    });
    return o.limits.length * pitch;
  });
}
