// Every figure of the prediction with how it is made; the ones to look at first, as cards; and what they hang on.
const figures = [
  ["time_us", "time", time, "cycles / SM clock; a launch is not in it"],
  ["cycles", "cycles", grouped, "the longer of the walk over CTAs and key tiles and of bytes over L2's and DRAM's rates"],
  ["bound", "bound by", String, "the resource with the largest share of its peak; latency if none reaches a third"],
  ["dram_read_bytes", "DRAM read", bytes, "Q, K, V once, and again whatever L2 had given up when a CTA asked for it"],
  ["dram_write_bytes", "DRAM written", bytes, "what L2 writes back while the kernel runs: O, LSE and spill, less what is left dirty"],
  ["compulsory_bytes", "compulsory", bytes, "Q + K + V read once, O + LSE written once"],
  ["hbm_reduction_vs_unfused", "less DRAM than unfused", percent, "1 - DRAM bytes / DRAM bytes of the unfused path"],
  ["l2_read_bytes", "L2 to SMs", bytes, "what the SMs ask for, less requests of neighbours for the same lines that merge on the way"],
  ["l2_crossing_bytes", "between L2's partitions", bytes, "sectors read beyond an SM's own side of L2 of what lives on the other, and written there"],
  ["sm_read_bytes", "asked for by the SMs", bytes, "32-byte sectors of every copy of Q, K and V, counted from the program's addresses"],
  ["sm_write_bytes", "SMs to L2", bytes, "sectors of O, LSE, and 4 bytes a thread for each word spilled in a key tile or parked once"],
  ["smem_wavefronts", "shared-memory wavefronts", count, "for each warp instruction, per group of lanes that fill 128 bytes: the most distinct words in one bank"],
  ["smem_wavefronts_ideal", "without conflicts", count, "the same with no two lanes in one bank"],
  ["smem_bytes_per_cta", "shared memory a CTA", bytes, "Q (O is staged over it) + stages × (K + V) tiles, and what the system reserves"],
  ["registers_per_thread", "registers a thread", grouped, "accumulators of O and S, fragments of Q, row state, and what a compiler keeps beside them, up to the limit; or the plan's own figure"],
  ["spill_bytes_per_thread", "spilled a thread and key tile", bytes, "what a compiler cannot do without, beyond the limit; or the plan's own figure"],
  ["parked_bytes_per_thread", "parked a thread, once a CTA", bytes, "what a compiler stores before the key tiles and loads in each of them; or the plan's own figure"],
  ["spill_store_bytes", "spill stored", bytes, "4 bytes a thread for each word stored in a key tile or once a CTA; in SMs to L2, since L1 writes through"],
  ["spill_load_bytes", "spill loaded", bytes, "4 bytes a thread for each word loaded in a key tile, whole or masked, or once a CTA, from L1; what misses it is not modelled"],
  ["ctas_per_sm", "CTAs an SM", grouped, "the least that registers, shared memory, warps and CTAs allow"],
  ["flops", "arithmetic needed", (x) => count(x, "FLOP"), "2 × (headdim + headdim_v) × pairs that the mask leaves"],
  ["flops_unmasked", "of the whole rectangle", (x) => count(x, "FLOP"), "2 × (headdim + headdim_v) × batch × heads × seqlen_q × seqlen_k"],
  ["flops_executed", "arithmetic done", (x) => count(x, "FLOP"), "matrix steps of visited tiles × 2 × 16 × 16 × step, masked pairs and padding included"],
  ["exp_count", "exponentials", count, "scores of visited tiles, masked ones included"],
  ["kernels", "kernels", grouped, "launches"],
];

function drawCards() {
  const dram = predict.dram_read_bytes + predict.dram_write_bytes;
  const f = (key) => figures.find(([k]) => k === key)[3];
  const cards = [
    [time(predict.time_us), "time", f("time_us")],
    [predict.bound, "binds", f("bound")],
    [bytes(dram), "through DRAM", "DRAM read + written"],
    [predict.compulsory_bytes > 0 ? (dram / predict.compulsory_bytes).toFixed(2) + " ×" : "\u2013", "of the compulsory bytes", f("compulsory_bytes")],
    [percent(predict.hbm_reduction_vs_unfused), "less DRAM than unfused", f("hbm_reduction_vs_unfused")],
    [predict.time_us > 0 ? predict.unfused.time_over_fused.toFixed(1) + " ×" : "\u2013", "as long without fusing", "unfused time / fused time, launches included"],
    [predict.time_us > 0 ? flopRate(predict.flops / predict.time_us * 1e6) : "\u2013", "of needed arithmetic", "arithmetic needed / time"],
    [bytes(predict.spill_bytes_per_thread), "spilled a thread and key tile", f("spill_bytes_per_thread")],
  ];
  cards.forEach(([value, what, how]) => card(value, what, how));
}

function drawFigures() {
  const u = predict.unfused;
  const rows = figures.map(([key, label, format, formula]) => [`${label}`, format(predict[key]), formula, key]).concat([
    ["unfused DRAM read", bytes(u.dram_read_bytes), "Q + K + V + S + P, the last two only if they do not fit an L2 partition", "unfused.dram_read_bytes"],
    ["unfused DRAM written", bytes(u.dram_write_bytes), "S + P + O", "unfused.dram_write_bytes"],
    ["unfused L2 to SMs", bytes(u.l2_read_bytes), "each product's tiles: rows and columns of its operands, one of them once for the CTAs that share it by multicast; S once", "unfused.l2_read_bytes"],
    ["unfused cycles", grouped(u.cycles), "of each kernel its start, then the longest of its pipes' work on the fullest SM and of bytes over L2's and DRAM's rates; a product's stores after that", "unfused.cycles"],
    ["unfused time", time(u.time_us), "cycles / SM clock, and a launch of each kernel", "unfused.time_us"],
    ["unfused bound by", u.bound, "as of the fused kernel, over the three kernels' cycles", "unfused.bound"],
  ]);
  table(section("figures").select("table"), [["figure"], ["value", "number"], ["how it is made", "formula"], ["name in the JSON", "formula"]], rows);
}

function drawEstimates() {
  const h = predict.hangs_on;
  say("estimates", h.length === 0 ? "No field of the device that moves these figures is an estimate."
    : "These fields of the device are estimates, and the figures beside them would move with them.");
  const tables = section("estimates").selectAll("table");
  if (h.length > 0)
    table(d3.select(tables[0][0]), [["field"], ["figures that move"], ["where it comes from", "formula"]],
      h.map((x) => [x.field, x.figures.join(", "), x.why]));
  table(d3.select(tables[0][1]), [["field"], ["kind"], ["where it comes from", "formula"]],
    data.device.fields.map((x) => [x.field, x.estimated ? "estimate" : "documented or measured", x.from]));
  d3.select("footer").text(`attest predict ${data.command} \u2013 simulated, not measured; docs/simulator.md says what supports each model.`);
}
