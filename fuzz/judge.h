// Who judges cases for a campaign: this process, or a worker. One judge a thread.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "attest/fuzz/campaign.h"

namespace attest {

/// What became of case k.
struct Outcome {
  std::uint64_t k = 0;
  Case the_case;
  bool unsupported = false;
  std::vector<const Property*> judged;                      // a crash or a hang is the last
  std::vector<std::pair<const Property*, Verdict>> failed;  // in the order of `judged`
};

class Judge {
 public:
  virtual ~Judge() = default;
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  using Next = std::function<std::optional<std::uint64_t>()>;
  using Done = std::function<void(Outcome)>;
  /// Judges every case that `next` gives and tells `done` of each, in order. Asks ahead of what it has done. After
  /// request_stop() what is in flight for long is given up, untold.
  virtual void run(const Next& next, const Done& done) = 0;

  /// One property of one case; none if the kernel does not take the case, or stopping was asked for meanwhile.
  /// A run of the kernel that takes longer than `hang_seconds` hangs; 0: none does.
  virtual std::optional<Verdict> judge(const Property& property, const Case& c, double hang_seconds) = 0;

  /// Of the kernel's runs that came back, the longest.
  virtual double longest_run_seconds() const = 0;

 protected:
  Judge() = default;
};

/// Judges here: a crash of the kernel ends this process, and a hang stays one.
std::unique_ptr<Judge> make_local_judge(const KernelFactory& make_kernel, const CampaignOptions& options);

/// Judges in a worker process, which is started again when it is lost. Throws what making the kernel there throws:
/// InvalidInput, EnvironmentError, KernelCrashed.
std::unique_ptr<Judge> make_worker_judge(const WorkerProgram& program, const CampaignOptions& options);

}  // namespace attest
