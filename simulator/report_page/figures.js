// Every figure of the prediction with how it is made; the ones to look at first, as cards; and what they hang on.
const named = (ofGpu, ofCores) => (data.cores ? ofCores : ofGpu);
const known = (x) => (x === null ? "not known" : count(x));
const figures = [
  ["time_us", "time", time],
  ["cycles", "cycles", grouped],
  ["bound", "bound by", String],
  ["dram_read_bytes", "DRAM read", bytes],
  ["dram_write_bytes", "DRAM written", bytes],
  ["compulsory_bytes", "compulsory", bytes],
  ["hbm_reduction_vs_unfused", "less DRAM than unfused", percent],
  ["l2_read_bytes", named("L2 to SMs", "L2 to the cores"), bytes],
  ["l2_crossing_bytes", "between L2's partitions", bytes],
  ["sm_read_bytes", named("asked for by the SMs", "asked for by the cores"), bytes],
  ["sm_write_bytes", named("SMs to L2", "cores to L2"), bytes],
  ["smem_wavefronts", "shared-memory wavefronts", count],
  ["smem_wavefronts_ideal", "without conflicts", count],
  ["smem_bytes_per_cta", named("shared memory a CTA", "unified buffer of a vector core"), bytes],
  ["registers_per_thread", "registers a thread", grouped],
  ["spill_bytes_per_thread", "spilled a thread and key tile", bytes],
  ["parked_bytes_per_thread", "parked a thread, once a CTA", bytes],
  ["spill_store_bytes", "spill stored", bytes],
  ["spill_load_bytes", "spill loaded", bytes],
  ["spill_store_instructions", "warp instructions that store spill", known],
  ["spill_load_instructions", "warp instructions that load spill", known],
  ["ctas_per_sm", "CTAs an SM", grouped],
  ["flops", "arithmetic needed", (x) => count(x, "FLOP")],
  ["flops_unmasked", "of the whole rectangle", (x) => count(x, "FLOP")],
  ["flops_executed", "arithmetic done", (x) => count(x, "FLOP")],
  ["exp_count", "exponentials", count],
  ["xu_instructions", "instructions of the exponentials' unit", count],
  ["kernels", "kernels", grouped],
].filter(([key]) => formulaOf(key) !== null);
const unfusedFigures = [
  ["dram_read_bytes", "unfused DRAM read", bytes],
  ["dram_write_bytes", "unfused DRAM written", bytes],
  ["l2_read_bytes", named("unfused L2 to SMs", "unfused L2 to the cores"), bytes],
  ["cycles", "unfused cycles", grouped],
  ["time_us", "unfused time", time],
  ["bound", "unfused bound by", String],
];

function drawCards() {
  const dram = predict.dram_read_bytes + predict.dram_write_bytes;
  const cards = [
    ["time_us", time(predict.time_us), "time"],
    ["bound", predict.bound, "binds"],
    ["dram_bytes", bytes(dram), "through DRAM"],
    ["compulsory_bytes", predict.compulsory_bytes > 0 ? (dram / predict.compulsory_bytes).toFixed(2) + " ×" : "\u2013", "of the compulsory bytes"],
    ["hbm_reduction_vs_unfused", percent(predict.hbm_reduction_vs_unfused), "less DRAM than unfused"],
    ["unfused_time_over_fused", predict.time_us > 0 ? predict.unfused.time_over_fused.toFixed(1) + " ×" : "\u2013", "as long without fusing"],
    ["flop_rate", predict.time_us > 0 ? flopRate(predict.flops / predict.time_us * 1e6) : "\u2013", "of needed arithmetic"],
    data.cores ? ["smem_bytes_per_cta", bytes(predict.smem_bytes_per_cta), "of a vector core's unified buffer"]
      : ["spill_bytes_per_thread", bytes(predict.spill_bytes_per_thread), "spilled a thread and key tile"],
  ];
  cards.forEach(([name, value, label]) => card(value, label, formulaOf(name)));
}

function drawFigures() {
  const u = predict.unfused;
  const rows = figures.map(([key, label, format]) => [label, format(predict[key]), formulaOf(key), key]).concat(
    unfusedFigures.map(([key, label, format]) => [label, format(u[key]), formulaOf(`unfused_${key}`), `unfused.${key}`]));
  table(section("figures").select("table"), [["figure"], ["value", "number"], ["how it is made", "formula"], ["name in the JSON", "name"]], rows);
}

const labels = new Map(figures.map(([key, label]) => [key, label])
  .concat(unfusedFigures.map(([key, label]) => [`unfused.${key}`, label]), [["unfused.dirty_bytes_left", "unfused left in L2"],
    ["unfused.sm_write_bytes", named("unfused SMs to L2", "unfused cores to L2")], ["unfused.time_over_fused", "unfused time over fused"]]));
const changeOf = (from, to) => (to === null ? 0 : to === from ? 0 : Math.abs((to - from) / from));  // from 0 it is infinite
const signed = (from, to) => {
  if (to === null) return "refused";
  const x = changeOf(from, to), sign = to < from ? "\u2212" : "+";
  return x === Infinity ? "from 0" : x < 0.0005 ? "0%" : sign + percent(x);
};
const largest = (x) => d3.max(x.figures.map((f) => Math.max(changeOf(f.value, f.halved), changeOf(f.value, f.doubled))));
const shownLargest = (x) => (x.figures.length === 0 ? "\u2013" : largest(x) === Infinity ? "from 0" : percent(largest(x)));

function drawEstimates() {
  const h = predict.hangs_on, count = `${predict.estimated_fields} of the ${data.device.fields.length} fields of the device are estimates`;
  say("estimates", h === null ? `${count}; attest predict --sensitivity says which figures move with which.`
    : h.length === 0 ? `${count}; halved or doubled, none moves a figure by more than 1%.`
    : `${count}. Each was halved and doubled, and the case predicted again with the same plan (of a list, every second entry): these move figures by more than 1%, by so much where halved \u2026 doubled, the one that moves most first.`);
  const tables = section("estimates").selectAll("table");
  if (h !== null && h.length > 0)
    table(d3.select(tables[0][0]), [["field", "name"], ["moves up to", "number"], ["figures that move, halved \u2026 doubled"], ["where it comes from", "formula"]],
      h.map((x) => [x.field, shownLargest(x),
        x.figures.map((f) => `${labels.get(f.name) || f.name} ${signed(f.value, f.halved)} \u2026 ${signed(f.value, f.doubled)}`.replace(/ /g, "\u00a0"))
          .concat(x.halved_refused ? `halved it is refused: ${x.halved_refused}` : [], x.doubled_refused ? `doubled it is refused: ${x.doubled_refused}` : []).join("; "),
        x.why]));
  table(d3.select(tables[0][1]), [["field", "name"], ["kind"], ["where it comes from", "formula"]],
    data.device.fields.map((x) => [x.field, x.estimated ? "estimate" : "documented or measured", x.from]));
  d3.select("footer").text(`attest predict ${data.command} \u2013 simulated, not measured; docs/simulator.md says what supports each model.`);
}
