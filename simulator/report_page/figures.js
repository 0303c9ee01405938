// Every figure of the prediction with how it is made; the ones to look at first, as cards; and what they hang on.
const named = (ofGpu, ofCores) => (data.cores ? ofCores : ofGpu);
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
  ["ctas_per_sm", "CTAs an SM", grouped],
  ["flops", "arithmetic needed", (x) => count(x, "FLOP")],
  ["flops_unmasked", "of the whole rectangle", (x) => count(x, "FLOP")],
  ["flops_executed", "arithmetic done", (x) => count(x, "FLOP")],
  ["exp_count", "exponentials", count],
  ["kernels", "kernels", grouped],
].filter(([key]) => formulaOf(key) !== null);

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
    [["dram_read_bytes", "unfused DRAM read", bytes], ["dram_write_bytes", "unfused DRAM written", bytes], ["l2_read_bytes", named("unfused L2 to SMs", "unfused L2 to the cores"), bytes],
      ["cycles", "unfused cycles", grouped], ["time_us", "unfused time", time], ["bound", "unfused bound by", String]]
      .map(([key, label, format]) => [label, format(u[key]), formulaOf(`unfused_${key}`), `unfused.${key}`]));
  table(section("figures").select("table"), [["figure"], ["value", "number"], ["how it is made", "formula"], ["name in the JSON", "name"]], rows);
}

function drawEstimates() {
  const h = predict.hangs_on;
  say("estimates", h.length === 0 ? "No field of the device that moves these figures is an estimate."
    : "These fields of the device are estimates, and the figures beside them would move with them.");
  const tables = section("estimates").selectAll("table");
  if (h.length > 0)
    table(d3.select(tables[0][0]), [["field", "name"], ["figures that move"], ["where it comes from", "formula"]],
      h.map((x) => [x.field, x.figures.join(", "), x.why]));
  table(d3.select(tables[0][1]), [["field", "name"], ["kind"], ["where it comes from", "formula"]],
    data.device.fields.map((x) => [x.field, x.estimated ? "estimate" : "documented or measured", x.from]));
  d3.select("footer").text(`attest predict ${data.command} \u2013 simulated, not measured; docs/simulator.md says what supports each model.`);
}
