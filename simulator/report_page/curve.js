// Curves of figures over one quantity. `series` has [field, colour, dashes]; a point without the field is a gap. With
// `logY` what is not positive is left out; with `binary` the axis' values are round in powers of two.
function curve(where, points, { title, label, xOf, series, format, logX, logY, binary, xTicks, xFormat, xLabel, filled, tip: tipOf }) {
  chart(where, label, (svg, width) => {
    const e = em(), box = { left: 4.8 * e, top: 2.6 * e, width: width - 6 * e, height: 12 * e };
    const has = (q, field) => q[field] !== undefined && formulaOf(field, q.cores) !== null && (!logY || q[field] > 0);
    const values = d3.merge(series.map(([field]) => points.filter((q) => has(q, field)).map((q) => q[field])));
    if (values.length === 0) values.push(1);
    const xs = points.map(xOf), least = d3.min(xs), most = d3.max(xs), beside = (most - least || 2) / 40;
    const x = (logX ? d3.scale.log().base(2).domain([least / 1.15, most * 1.15]) : d3.scale.linear().domain([least - beside, most + beside]))
      .range([box.left, box.left + box.width]);
    const yDomain = logY ? [d3.min(values) / 1.6, d3.max(values) * 1.6] : [0, 1.1 * d3.max(values) || 1];
    const y = (logY ? d3.scale.log() : d3.scale.linear()).domain(yDomain).range([box.top + box.height, box.top]);
    const every = Math.ceil(xTicks.length * (0.9 + 0.5 * d3.max(xTicks, (t) => xFormat(t).length)) * e / box.width);
    const yTicks = !logY ? roundFrom0(yDomain[1], binary) : rounds(yDomain, binary ? 4 : 10, 6);
    axes(svg, width, box, x, y, { xTicks: xTicks.filter((_, i) => i % every === 0), yTicks, xFormat, yFormat: (v) => brief(format(v)), xLabel, yLabel: title });
    series.forEach(([field, color, dash]) => {
      const line = svg.append("path").datum(points).attr({ fill: "none", stroke: color, "stroke-width": 2.5, "stroke-dasharray": dash || null,
        d: d3.svg.line().defined((q) => has(q, field)).x((q) => x(xOf(q))).y((q) => y(q[field])) });
      if (dash) return tip(line, field.replace(/_/g, " "), formulaOf(field));
      const small = 0.8 * points.length * e > box.width;
      const dots = svg.append("g").selectAll("circle").data(points.filter((q) => has(q, field))).enter().append("circle").attr({
        cx: (q) => x(xOf(q)), cy: (q) => y(q[field]), r: (small ? 0.12 : 0.28) * e, stroke: color, "stroke-width": small ? 1 : 2,
        fill: (q) => (filled(q) || small ? color : "#fff") });
      tip(dots, (q) => tipOf(q, format(q[field])), (q) => formulaOf(field, q.cores));
    });
    return box.top + box.height + 2.8 * e;
  });
}

/// Round values from 0 to `most`; with `binary` steps are powers of two.
function roundFrom0(most, binary) {
  if (!binary) return d3.scale.linear().domain([0, most]).ticks(5);
  const step = Math.pow(2, Math.floor(Math.log2(most / 3)));
  return d3.range(0, most, step);
}
