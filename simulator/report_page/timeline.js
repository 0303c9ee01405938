// What the CTA slots of one SM do: the whole of it, and its first key tiles.
function drawTimeline() {
  const t = data.timeline, us = 1e6 / t.clock_hz;
  const names = ["start: Q and the first K arrive", "key tile", "finish: O leaves"];
  const fills = [colors.good, colors.fused, colors.write];
  const events = t.events.map(([kind, slot, begin, end, q, k, batch, head]) => ({ kind, slot, begin: begin * us, end: end * us, q, k, batch, head }));
  if (events.length === 0) return say("timeline", "No CTA was walked.");
  const slots = d3.max(events, (e) => e.slot) + 1;
  const ctas = [], open = {};
  events.forEach((e) => {
    if (e.kind === 0) ctas.push(open[e.slot] = { slot: e.slot, begin: e.begin, end: e.end, q: e.q, batch: e.batch, head: e.head, tiles: 0 });
    const cta = open[e.slot];
    if (cta) cta.end = Math.max(cta.end, e.end), cta.tiles += e.kind === 1 ? t.key_tiles_per_event : 0;
  });
  say("timeline", `${plural(t.ctas, "CTA")} on ${t.num_sms} SMs with ${plural(slots, "slot")} each. Above, the CTAs of one SM` +
    (t.complete ? "" : ", as far as the walk was kept") + "; below, its beginning, key tile by key tile. " +
    "The next CTA goes to the first slot that is free, so that waves form and drift apart.");
  legend("timeline", names.map((text, i) => ({ color: fills[i], text })).concat(
    t.key_tiles_per_event > 1 ? [{ color: "#fff", text: `${t.key_tiles_per_event} key tiles were walked at a time` }] : []));
  const made = [
    "from the CTA's start: Q and the first K arrive, or the first scores run alone",
    "mean value analysis of what a warp needs of tensor pipe, exponentials, issue and shared memory, with as many warps as share the SM; varied by the device's deviation of a step",
    "the last products run alone and O is divided, packed and stored"];
  const what = (c) => `batch ${c.batch}, head ${c.head}, query tile ${c.q}`;
  const where = section("timeline").select(".chart");

  strip("CTAs", d3.max(events, (e) => e.end), (g, x, row) => ctas.forEach((c, i) => {
    const bar = g.append("rect").attr({ x: x(c.begin), y: row(c.slot), width: Math.max(0.8, x(c.end) - x(c.begin) - 0.6), height: row.height,
      fill: colors.fused, "fill-opacity": i % 2 ? 0.55 : 0.85 });
    tip(bar, `${what(c)}: ${time(c.end - c.begin)}, ${plural(c.tiles, "key tile")}`, "its start + its key tiles + its finish");
  }));
  // as many key tiles as can be told apart
  const some = events.filter((e) => e.slot === 0)[Math.min(39, events.filter((e) => e.slot === 0).length - 1)].end;
  strip("the beginning", some, (g, x, row) => events.filter((e) => e.begin < some).forEach((e) => {
    const bar = g.append("rect").attr({ x: x(e.begin), y: row(e.slot), width: Math.max(0.8, x(Math.min(e.end, some)) - x(e.begin) - 0.6), height: row.height,
      fill: fills[e.kind], "fill-opacity": e.k % 2 && e.kind === 1 ? 0.6 : 0.9 });
    tip(bar, `${what(e)}, ${e.kind === 1 ? `key tile ${e.k}` : names[e.kind]}: ${time(e.end - e.begin)}`, made[e.kind]);
  }));

  function strip(title, end, draw) {
    chart(where.append("div"), title, (svg, width) => {
      const e = em(), left = 3.6 * e, top = 1.6 * e, pitch = 1.7 * e;
      const x = d3.scale.linear().domain([0, end]).range([left, width - 2 * e]);
      const row = (slot) => top + slot * pitch;
      row.height = 1.4 * e;
      textAt(svg, 0, 0.9 * e, title, { anchor: "start", cls: "strong" });
      d3.range(slots).forEach((s) => textAt(svg, 0, row(s) + e, `slot ${s}`, { anchor: "start", cls: "soft" }));
      draw(svg.append("g"), x, row);
      const bottom = top + slots * pitch;
      x.ticks(Math.max(2, Math.floor(width / (7 * e)))).forEach((tick) => {
        svg.append("line").attr({ x1: x(tick), x2: x(tick), y1: bottom, y2: bottom + 0.3 * e, stroke: "#8c959f" });
        textAt(svg, x(tick), bottom + 1.2 * e, brief(time(tick)), { cls: "soft", width });
      });
      return bottom + 2 * e;
    });
  }
}
