// The page of one prediction.
const ofMultiprocessor = [drawBanks, drawRegisters, drawOccupancy, drawTimeline];
if (data.cores) ["banks", "occupancy", "timeline"].forEach((id) => section(id).remove());
[drawCards, drawFlow, drawBusy, drawKernels, drawRoofline, drawLengths].concat(data.cores ? [drawBuffers] : ofMultiprocessor)
  .concat([drawFigures, drawEstimates]).forEach((draw) => draw());
