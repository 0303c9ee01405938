// Draws what the scripts before it asked for, again where the window's width changes or the page goes to paper.
drawAll();
document.documentElement.dataset.drawn = charts.length;
let drawnAt = innerWidth;
addEventListener("resize", () => {
  if (innerWidth !== drawnAt) drawnAt = innerWidth, requestAnimationFrame(drawAll);
});
const onPaper = (paper) => {
  document.documentElement.classList.toggle("paper", paper);
  drawAll();
};
addEventListener("beforeprint", () => onPaper(true));
addEventListener("afterprint", () => onPaper(false));
