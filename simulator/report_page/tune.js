// The page of `attest tune`.
[drawTuneCards, drawFastest, drawTiles, drawAgainst, drawRanking, drawWhy, drawSkipped].forEach((draw) => draw());
d3.select("footer").text(`attest tune ${data.command} --device ${data.device.name} \u2013 simulated, not measured; docs/simulator.md says what supports each model.`);
