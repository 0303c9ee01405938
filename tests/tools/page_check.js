// Looks at a page of `--html` from inside and tells the page around it what it saw, in ASCII without
// markup. Stands in the page's head, before anything of it runs.
"use strict";
(() => {
  const errors = [];
  addEventListener("error", (e) => errors.push(e.message));
  document.addEventListener("securitypolicyviolation", (e) => errors.push("blocked " + e.blockedURI));
  const marks = "rect, circle, path, line";

  /// Texts of one chart that stand on each other or stick out of it. Turned ones have boxes that say nothing.
  const misplaced = (svg) => {
    const edge = svg.getBoundingClientRect(), found = [];
    const texts = [...svg.querySelectorAll("text")].filter((t) => !t.hasAttribute("transform") && t.textContent !== "")
      .map((t) => ({ text: t.textContent, box: t.getBoundingClientRect() }));
    texts.forEach((a, i) => {
      if (a.box.left < edge.left - 1 || a.box.right > edge.right + 1 || a.box.top < edge.top - 1 || a.box.bottom > edge.bottom + 1)
        found.push("outside: " + a.text);
      texts.slice(i + 1).forEach((b) => {
        const across = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
        const down = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
        if (across > 1 && down > 4) found.push(a.text + " on " + b.text);
      });
    });
    return found;
  };

  /// Whether a line of a cell ends within a word, for want of width.
  const partsAWord = (cell) => {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), range = document.createRange();
    for (let node; (node = walker.nextNode());)
      for (const word of node.textContent.matchAll(/[a-z]{3,}/gi)) {
        range.setStart(node, word.index), range.setEnd(node, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1) return true;
      }
    return false;
  };

  const see = () => {
    const root = document.documentElement, sections = {};
    document.querySelectorAll("section").forEach((s) => {
      sections[s.id] = {
        words: s.textContent.length,
        charts: s.querySelectorAll("svg").length,
        marks: Math.min(Infinity, ...[...s.querySelectorAll("svg")].map((svg) => svg.querySelectorAll(marks).length)),
        titles: s.querySelectorAll("svg title").length,
        rows: s.querySelectorAll("tbody tr").length,
        misplaced: [].concat(...[...s.querySelectorAll("svg")].map(misplaced)),
        // marks of charts that do not say on hover how their figure is made
        untold: [...s.querySelectorAll("svg title")].filter((t) => t.parentNode.tagName !== "text" && !/\n= ./.test(t.textContent)).map((t) => t.textContent),
        changes: s.textContent.match(/(refused|from\u00a00|[+\u2212]?[\d.]+%)\u00a0\u2026\u00a0(refused|from\u00a00|[+\u2212]?[\d.]+%)/g) || [],
        kernels: s.textContent.match(/\d+ kernels?/g) || [],
        deviations: (s.textContent.match(/\u00b1\u00a0[<\d]/g) || []).length,
        unreadable: /NaN|undefined|Infinity|\[object/.test(s.textContent),
      };
      if (sections[s.id].charts === 0) sections[s.id].marks = 0;
    });
    return {
      width: innerWidth, overflow: root.scrollWidth - root.clientWidth, drawn: Number(root.dataset.drawn || 0), errors, sections,
      foreign: document.querySelectorAll("img, iframe, link, object, embed, script[src]").length,
      clipped: [...document.querySelectorAll(".card b")].filter((b) => b.scrollWidth > b.clientWidth).map((b) => b.textContent),
      place: document.querySelector(".place").textContent,
      formulas: [...document.querySelectorAll("svg title, td.formula, .card i")].map((t) => t.textContent).join("\n"),
      parted: [...document.querySelectorAll("td:not(.formula), th, .card span, .legend li")].filter(partsAWord).map((t) => t.textContent),
    };
  };
  const ascii = (text) => text.replace(/[^ -~]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"))
    .replace(/[<>&]/g, (c) => "\\u00" + c.charCodeAt(0).toString(16));
  addEventListener("load", () => parent.postMessage(ascii(JSON.stringify(see())), "*"));
})();
