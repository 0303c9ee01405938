// Which rows of a tile meet in which of the 32 banks, as the plan has it and with the swizzle turned off (or on).
function drawBanks() {
  const { planned, other } = data.banks;
  const maps = planned.swizzled ? [planned, other] : [other, planned];
  const tile = (map, operand) => map.tiles.find((t) => t.operand === operand);
  const ways = (map) => d3.max(["K", "V"], (x) => tile(map, x).ways);
  const how = (map) => (map.swizzled ? "swizzled" : "rows as they are");
  say("banks", `A wavefront serves each bank once. ${ways(planned) === 1 ? "No two of the rows that are read together meet" :
    `Rows that are read together meet, up to ${ways(planned)} in a bank`} in this plan (${how(planned)}); ${how(other)} ` +
    `they would take ${plural(ways(other), "wavefront")}. Coloured: the first ${tile(planned, "K").lanes.length} lanes of a read, ` +
    "each with its row's number; grey: where the first 16 bytes of the other rows lie.");
  const panels = section("banks").select(".chart").classed("panels", true);
  ["K", "V"].forEach((operand) => maps.forEach((map) => drawTile(operand, map)));

  function drawTile(operand, map) {
    const t = tile(map, operand), lanes = t.lanes, rows = t.rows.slice(0, 16);
    const title = `${operand}, ${how(map)}: ${plural(t.ways, "wavefront")} for ${plural(lanes.length, "lane")}`;
    chart(panels.append("div"), title, (svg, width) => {
      const e = em(), left = 2.6 * e, top = 3.2 * e, cell = (width - left - 2) / 32, height = 1.05 * e;
      textAt(svg, 0, 0.9 * e, title, { anchor: "start", cls: "strong" });
      const g = svg.append("g").attr("transform", `translate(${left},${top})`);
      g.append("rect").attr({ width: 32 * cell, height: rows.length * height, fill: "#f6f8fa" });
      d3.range(0, 33, 4).forEach((b) => {
        g.append("line").attr({ x1: b * cell, x2: b * cell, y1: 0, y2: rows.length * height, stroke: colors.line });
        if (b < 32) textAt(svg, left + (b + 0.5) * cell, top - 0.4 * e, b, { cls: "soft" });
      });
      rows.forEach((_, row) => { if (row % 4 === 0) textAt(svg, left - 0.5 * e, top + (row + 0.8) * height, row, { anchor: "end", cls: "soft" }); });
      const read = d3.set(lanes.map((lane) => lane.row));
      rows.forEach((bank, row) => {
        if (!read.has(row)) g.append("rect").attr({ x: bank * cell + 1, y: row * height + 1, width: 4 * cell - 2, height: height - 2, fill: "#c9d1d9" });
      });
      const users = d3.range(32).map((bank) => d3.set(lanes.filter((l) => bank >= l.bank && bank < l.bank + l.num_banks).map((l) => l.row)).size());
      lanes.forEach((lane) => {
        if (lane.row >= rows.length) return;
        const meets = users[lane.bank] > 1;
        const mark = g.append("rect").attr({ x: lane.bank * cell + 1, y: lane.row * height + 1, width: Math.max(1, lane.num_banks * cell - 2),
          height: height - 2, fill: meets ? colors.bad : colors.good, "fill-opacity": meets ? 0.55 + 0.4 * (lane.row % 2) : 0.85 });
        tip(mark, `row ${lane.row}, bytes ${lane.byte} to ${lane.byte + 4 * lane.num_banks - 1}: banks ${lane.bank} to ` +
          `${lane.bank + lane.num_banks - 1}, shared by ${plural(users[lane.bank], "row")}`,
          "bank = place in shared memory / 4 bytes mod 32; wavefronts = the most rows that one bank serves");
        if (lane.num_banks * cell > 1.4 * e)
          g.append("text").attr({ x: (lane.bank + lane.num_banks / 2) * cell, y: (lane.row + 0.78) * height, "text-anchor": "middle" })
            .style("fill", "#fff").text(lane.row);
      });
      textAt(svg, left + 32 * cell, 2 * e, "bank", { anchor: "end", cls: "soft" });
      textAt(svg, 0, 2.1 * e, "row", { anchor: "start", cls: "soft" });
      return top + rows.length * height + 0.6 * e;
    });
  }
  drawKinds(maps, planned, how);
}

function drawKinds(maps, planned, how) {
  const table = section("banks").select("table");
  const name = (a) => `${a.use} (${a.instruction}${a.in_smem_wavefronts ? "" : ", not in the total"})`;
  const of = (map, kind) => map.accesses.find((a) => name(a) === kind) || { wavefronts: 0, wavefronts_ideal: 0, ways: 1 };
  const kinds = d3.set(d3.merge(maps.map((map) => map.accesses.map(name)))).values();
  if (kinds.length === 0) return;
  const head = table.append("thead").append("tr");
  head.append("th").text("wavefronts of the whole case; × the least possible; the worst conflict of an instruction");
  maps.forEach((map) => head.append("th").attr("class", "number").text(how(map) + (map === planned ? " (this plan)" : "")));
  const cell = (row, text) => row.append("td").attr("class", "number").text(text);
  const body = table.append("tbody");
  kinds.forEach((kind) => {
    const row = body.append("tr");
    row.append("td").text(kind);
    maps.forEach((map) => {
      const k = of(map, kind);
      cell(row, count(k.wavefronts) + (k.wavefronts === k.wavefronts_ideal ? "" :
        ` (× ${brief((k.wavefronts / Math.max(1, k.wavefronts_ideal)).toFixed(2) + ", ")}${k.ways}-way)`));
    });
  });
}
