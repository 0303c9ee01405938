const ofMultiprocessor = [drawBanks, drawRegisters, drawOccupancy, drawTimeline];
if (data.buffers) ["banks", "occupancy", "timeline"].forEach((id) => section(id).remove());
[drawCards, drawFlow, drawBusy, drawKernels, drawRoofline, drawLengths].concat(data.buffers ? [drawBuffers] : ofMultiprocessor)
  .concat([drawFigures, drawEstimates]).forEach((draw) => draw());
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
