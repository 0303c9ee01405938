// All nights of a folder, in one SQLite file. Pages, JUnit and JSON are made of it and hold nothing of their own.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attest/nightly/night.h"

namespace attest {

class Database;

/// What is recorded together, or not at all.
struct Part {
  Step step;  // its seconds are added to those that a part of the same step recorded before
  std::vector<Check> checks;
  std::vector<Series> series;
  std::vector<Covered> covered;
};

/// A night of before, of a series.
struct Figures {
  std::string started;
  std::vector<double> values;
  bool red = false;
};

/// Of a check that is red: since when without a break, by how many nights, and the last night that it was not.
struct RedSince {
  std::string first, last_good;  // started; last_good is empty where it was never seen passing
  std::int64_t nights = 0;
};

class History {
 public:
  static constexpr std::string_view file_name = "history.sqlite";

  /// Opens `folder`'s, and makes folder and file where there are none unless `must_exist`. Throws as Database does,
  /// and InvalidInput naming `history` where there must be one, or a newer attest or another program wrote it.
  explicit History(const std::filesystem::path& folder, bool must_exist = false);
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  /// Records the beginning: everything but its parts. Gives its id.
  std::int64_t begin(const Night& night);
  /// One transaction. A check that the night has already keeps the more severe state with its words.
  void record(std::int64_t id, const Part& part);
  void finish(std::int64_t id, const std::string& when);

  /// Ascending.
  std::vector<std::int64_t> ids() const;
  /// Throws InvalidInput naming `history`, the field and its value where that is none that attest records.
  Night load(std::int64_t id) const;

  /// What nights before `id` on the same device, driver and toolkit measured of the series, oldest first, since its
  /// newest baseline there: the newest `most` that are not red, and the red ones among and after them. However long
  /// a figure has been red, what it was before is still here.
  std::vector<Figures> before(std::int64_t id, const Series& series, int most) const;
  RedSince red_since(std::int64_t id, const std::string& check) const;

 private:
  std::unique_ptr<Database> database_;
};

}  // namespace attest
