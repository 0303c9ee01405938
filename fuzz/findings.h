// What a campaign found: the first case of each way of failing, its small form, and its place in the corpus.
#pragma once
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "attest/fuzz/corpus.h"
#include "judge.h"

namespace attest {

/// Where a case came from; corpus before campaign.
struct Origin {
  bool campaign = true;
  std::uint64_t index = 0;  // k, or the ordinal in the corpus
  std::string corpus_file;  // empty: case k of the campaign

  friend bool operator<(const Origin& a, const Origin& b) {
    return std::tie(a.campaign, a.index) < std::tie(b.campaign, b.index);
  }
};

class Findings {
 public:
  Findings(const CampaignOptions& options, const Corpus* corpus) : options_(options), corpus_(corpus) {}

  /// One failed judgement.
  void record(const Origin& origin, const Case& c, const Property& property, Verdict verdict);

  /// A failing case as it was found joins the corpus at once, under the first property that it failed.
  void join_corpus(const Case& c, const Property& property, Status status);

  /// Made small, listed by the first case and of one case in the order of properties(); what was made small takes the
  /// place in the corpus of what it was made from. After request_stop(), or without a judge, as they were found.
  std::vector<Failure> list_failures(Judge* judge);

  std::uint64_t corpus_added() const { return added_.size(); }
  const std::string& corpus_error() const { return corpus_error_; }
  bool empty() const { return kinds_.empty(); }

 private:
  // A way of failing, and the first case of it.
  struct Kind {
    const Property* property = nullptr;
    std::optional<Origin> origin;
    Case found;
    Verdict verdict;
    std::uint64_t seen = 0;
  };

  std::vector<const Kind*> ordered() const;
  Shrunk make_small(Judge& judge, const Kind& kind, double seconds_left) const;
  Shrunk make_small_hung(Judge& judge, const Kind& kind, double seconds_left) const;
  Attempt attempt_by(Judge& judge, double hang_seconds) const;
  CorpusEntry entry_of(const Case& c, const Property& property, Status status) const;
  std::optional<std::string> add(const CorpusEntry& entry);
  void replace_in_corpus(const Kind& kind, const Case& minimal);

  const CampaignOptions& options_;
  const Corpus* corpus_;  // null: none
  std::map<std::pair<std::string, Status>, Kind> kinds_;
  std::vector<std::string> added_;
  std::string corpus_error_;
};

}  // namespace attest
