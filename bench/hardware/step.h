// A key tile of forward attention by warpgroups, without copies: S = Q K^T, softmax, O += P V, as it can be arranged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attest::hardware {

/// The multiplication of the scores and of O, and what is between; each can be left out.
enum StepParts : int { kScores = 1, kSoftmax = 2, kOutput = 4, kWholeStep = 7 };

struct StepRun {
  int tile_n = 128, headdim = 128;
  int warpgroups = 2;
  bool p_in_smem = false;
  bool overlap = true;  ///< the scores of a tile are issued with O += P V of the one before
  bool turns = true;    ///< warpgroups issue their products in turn
  int parts = kWholeStep;
  std::string name() const;
};

/// Which of them there are.
std::vector<StepRun> step_runs();

struct StepTimes {
  double cycles = 0;  ///< a key tile, steady
  /// Of a few steady key tiles, by warpgroup, tile and moment: products issued, scores there, exponentials done, O
  /// there, end; cycles from the first.
  std::vector<std::vector<std::vector<long long>>> moments;
};

/// Runs one CTA; throws for a run that is not in step_runs().
StepTimes run_step(const StepRun& run);

}  // namespace attest::hardware
