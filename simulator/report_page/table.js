// Tables, and the cards under the headline.
function table(where, heads, rows) {
  const head = where.append("thead").append("tr");
  heads.forEach(([text, cls]) => head.append("th").attr("class", cls || null).text(text));
  const body = where.append("tbody");
  rows.forEach((cells) => {
    const row = body.append("tr");
    cells.forEach((text, i) => row.append("td").attr("class", heads[i][1] || null).text(text));
  });
}

/// A figure to look at first; `how` it is made shows on hover.
function card(value, what, how) {
  const box = d3.select("#cards").append("div").attr({ class: "card tip", tabindex: 0 });
  box.append("b").text(value);
  box.append("span").text(what);
  box.append("i").attr("role", "tooltip").text(how);
}
