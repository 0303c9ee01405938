// What the pages of `attest measure --html` share.
const kinds = data.figures, calls = data.calls;
const shownFigure = { B: bytes, us: time, "%": (x) => x.toFixed(1) + "%", "": count };
const off = (q) => q.error;
const ofWrites = "of DRAM writes, some of which stay in L2, of O and LSE at least";
const ratio = (q) => (q.measured > 0 ? (q.predicted / q.measured).toFixed(3) : "\u2013");
const grades = [[0.02, colors.good, "within 2%"], [0.1, colors.fused, "within 10%"], [Infinity, colors.unfused, "further off"]];
const shadeOf = (q) => grades.find(([limit]) => off(q) <= limit)[1];
const counted = d3.max(calls, (c) => c.counts);  // times: of several, what was measured is the mean
const spread = (q) => (q.deviation === null ? "" : ` \u00b1\u00a0${percent(q.deviation)}`);
const title = (name) => name.replace(/_/g, " ");
d3.select("footer").text("attest measure \u2013 docs/simulator.md says what supports each model, and what remains unexplained.");
