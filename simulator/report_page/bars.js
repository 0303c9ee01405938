// Bars of figures over values that have no order: a group for each point. `series` has [field, colour, dashes]; what is
// dashed is a mark across the bars of its group, not a bar.
function bars(where, points, { title, label, nameOf, series, format, tip: tipOf }) {
  chart(where, label, (svg, width) => {
    const e = em(), right = 5.5 * e, thick = 0.85 * e, solid = series.filter(([, , dash]) => !dash), marks = series.filter(([, , dash]) => dash);
    const pitch = 1.5 * e + solid.length * (thick + 0.15 * e) + 0.5 * e, top = 1.8 * e;
    const x = d3.scale.linear().domain([0, d3.max(d3.merge(series.map(([f]) => points.map((q) => q[f])))) || 1]).range([0, width - right]);
    textAt(svg, 0, 0.9 * e, title, { anchor: "start", cls: "strong" });
    points.forEach((q, i) => {
      const y = top + i * pitch;
      textCut(svg, 0, y + 0.95 * e, nameOf(q), width);
      const has = ([field]) => formulaOf(field, q.cores) !== null;
      if (!solid.some(has)) textAt(svg, 0, y + 2.05 * e, "\u2013", { anchor: "start", cls: "soft" });
      solid.filter(has).forEach(([field, color], k) => {
        const at = y + 1.3 * e + k * (thick + 0.15 * e);
        tip(svg.append("rect").attr({ x: 0, y: at, width: Math.max(1, x(q[field])), height: thick, fill: color }), tipOf(q, format(q[field])), formulaOf(field, q.cores));
        // beside the bar, and beside a mark that would stand in the text
        const beside = marks.filter(has).map(([f]) => x(q[f])).filter((m) => m > x(q[field]) && m < x(q[field]) + 5 * e);
        textAt(svg, d3.max([x(q[field])].concat(beside)) + 0.4 * e, at + 0.75 * e, format(q[field]), { anchor: "start", width });
      });
      marks.filter(has).forEach(([field, color, dash]) => tip(svg.append("line").attr({ x1: x(q[field]), x2: x(q[field]), y1: y + 1.15 * e, y2: y + pitch - 0.5 * e,
        stroke: color, "stroke-width": 3, "stroke-dasharray": dash }), tipOf(q, format(q[field])), formulaOf(field, q.cores)));
    });
    return top + points.length * pitch;
  });
}
