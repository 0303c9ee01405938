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
        kernels: s.textContent.match(/\d+ kernels?/g) || [],
        unreadable: /NaN|undefined|Infinity|\[object/.test(s.textContent),
      };
      if (sections[s.id].charts === 0) sections[s.id].marks = 0;
    });
    return {
      width: innerWidth, overflow: root.scrollWidth - root.clientWidth, drawn: Number(root.dataset.drawn || 0), errors, sections,
      foreign: document.querySelectorAll("img, iframe, link, object, embed, script[src]").length,
      clipped: [...document.querySelectorAll(".card b")].filter((b) => b.scrollWidth > b.clientWidth).map((b) => b.textContent),
      place: document.querySelector(".place").textContent,
    };
  };
  const ascii = (text) => text.replace(/[^ -~]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"))
    .replace(/[<>&]/g, (c) => "\\u00" + c.charCodeAt(0).toString(16));
  addEventListener("load", () => parent.postMessage(ascii(JSON.stringify(see())), "*"));
})();
