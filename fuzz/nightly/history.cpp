#include "attest/nightly/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "attest/fuzz/outcomes.h"
#include "attest/problem/error.h"
#include "database.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t schema_version = 2;

constexpr const char* schema = R"(
  CREATE TABLE night (id INTEGER PRIMARY KEY, started TEXT NOT NULL, finished TEXT NOT NULL DEFAULT '', version TEXT NOT NULL,
    host TEXT NOT NULL, device TEXT NOT NULL, driver TEXT NOT NULL, toolkit TEXT NOT NULL,
    seed TEXT NOT NULL, generator_version TEXT NOT NULL, shard_index INTEGER NOT NULL, shard_count INTEGER NOT NULL,
    kernels TEXT NOT NULL);
  CREATE TABLE step (night INTEGER NOT NULL REFERENCES night, name TEXT NOT NULL, seconds REAL NOT NULL,
    note TEXT NOT NULL, PRIMARY KEY (night, name));
  CREATE TABLE verdict (night INTEGER NOT NULL REFERENCES night, name TEXT NOT NULL, state TEXT NOT NULL,
    detail TEXT NOT NULL, repro TEXT NOT NULL, of_a_kernel INTEGER NOT NULL, PRIMARY KEY (night, name));
  CREATE INDEX verdict_by_name ON verdict (name, night);
  CREATE TABLE series (night INTEGER NOT NULL REFERENCES night, name TEXT NOT NULL, unit TEXT NOT NULL,
    figures TEXT NOT NULL, begins INTEGER NOT NULL, PRIMARY KEY (night, name));
  CREATE INDEX series_by_name ON series (name, night);
  CREATE TABLE covered (night INTEGER NOT NULL REFERENCES night, kernel TEXT NOT NULL, first_case TEXT NOT NULL,
    outcomes TEXT NOT NULL, PRIMARY KEY (night, kernel, first_case)))";

// From 1, whose checks told by their names what they were of.
constexpr const char* from_version_1 = R"(
  ALTER TABLE verdict ADD COLUMN of_a_kernel INTEGER NOT NULL DEFAULT 1;
  UPDATE verdict SET of_a_kernel = 0 WHERE name = 'doctor' OR name GLOB 'bytes/predicted/*')";

fs::path prepared(const fs::path& folder, bool must_exist) {
  fs::path path = folder / History::file_name;
  std::error_code error;
  if (must_exist && !fs::is_regular_file(path, error))
    throw InvalidInput("history", fmt::format("'{}'", path.string()), "is no file; attest nightly --out makes one");
  if (must_exist && fs::file_size(path, error) == 0)  // opening it would make a database of it
    throw InvalidInput("history", fmt::format("'{}'", path.string()), "is empty: no night is recorded");
  if (fs::exists(folder, error) && !fs::is_directory(folder, error))
    throw InvalidInput("out", fmt::format("'{}'", folder.string()), "is no folder");
  fs::create_directories(folder, error);
  if (error) throw EnvironmentError(fmt::format("'{}': cannot be made: {}", folder.string(), error.message()));
  return path;
}

/// The schema's, 0 of a database without anything in it. Throws InvalidInput for one that this attest did not make.
std::int64_t version_of(Database& database, const std::string& name, bool must_exist) {
  const auto number = [&](const char* sql) {
    Statement read(database, sql);
    read.step();
    return read.integer(0);
  };
  const std::int64_t version = number("PRAGMA user_version");
  const bool empty = number("SELECT count(*) FROM sqlite_master") == 0;
  const bool has_nights = number("SELECT count(*) FROM sqlite_master WHERE name IN ('night', 'verdict')") == 2;
  if (version == 0 ? must_exist || !empty : !has_nights)
    throw InvalidInput("history", name, "is a database of another program");
  if (version > schema_version)
    throw InvalidInput("history", fmt::format("{} version {}", name, version),
                       fmt::format("is newer than {}, this attest's", schema_version));
  return version;
}

std::uint64_t unsigned_of(std::string_view field, const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw InvalidInput("history", fmt::format("{} '{}'", field, text.substr(0, 40)),
                       "is no integer from 0 to 2^64 - 1");
  return value;
}

template <class T>
std::vector<T> list_of(std::string_view field, const std::string& text) {
  try {
    return nlohmann::json::parse(text).get<std::vector<T>>();
  } catch (const nlohmann::json::exception&) {
    throw InvalidInput("history", fmt::format("{} '{}'", field, text.substr(0, 40)), "is no list of its kind");
  }
}

std::vector<double> figures_of(const std::string& text) {
  std::vector<double> figures = list_of<double>("figures", text);
  if (figures.empty()) throw InvalidInput("history", fmt::format("figures '{}'", text), "has none; one is the least");
  return figures;
}

// As utc_now() writes it.
std::string time_of(std::string_view field, const std::string& text) {
  std::tm parts{};
  const char* const end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  if (text.size() != std::string_view("2026-01-31T23:59:59Z").size() || end != text.c_str() + text.size())
    throw InvalidInput("history", fmt::format("{} '{}'", field, text.substr(0, 40)),
                       "is no time such as 2026-01-31T23:59:59Z");
  return text;
}

double seconds_of(double seconds) {
  if (!(std::isfinite(seconds) && seconds >= 0))
    throw InvalidInput("history", fmt::format("seconds '{}'", seconds), "is no finite number from 0");
  return seconds;
}

std::string list_text(const auto& list) {
  return nlohmann::json(list).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

History::History(const fs::path& folder, bool must_exist)
    : database_(std::make_unique<Database>(prepared(folder, must_exist))) {
  const std::string name = fmt::format("'{}'", (folder / file_name).string());
  version_of(*database_, name, must_exist);
  database_->take_over();
  Transaction making(*database_);
  const std::int64_t version = version_of(*database_, name, must_exist);  // another process may have made it meanwhile
  if (version == 0) database_->execute(schema);
  if (version == 1) database_->execute(from_version_1);
  if (version < schema_version) database_->execute(fmt::format("PRAGMA user_version = {}", schema_version).c_str());
  making.commit();
}

History::~History() = default;

std::int64_t History::begin(const Night& night) {
  Transaction all(*database_);
  Statement insert(*database_,
                   "INSERT INTO night (started, version, host, device, driver, toolkit, seed, generator_version, "
                   "shard_index, shard_count, kernels) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)");
  const auto& [host, device, driver, toolkit] = night.machine;
  insert.bind(night.started).bind(night.version).bind(host).bind(device).bind(driver).bind(toolkit);
  insert.bind(fmt::format("{}", night.campaign.seed)).bind(fmt::format("{}", night.campaign.generator_version));
  insert.bind(static_cast<std::int64_t>(night.campaign.shard_index));
  insert.bind(static_cast<std::int64_t>(night.campaign.shard_count)).bind(list_text(night.kernels)).run();
  const std::int64_t id = database_->last_id();
  all.commit();
  return id;
}

void History::record(std::int64_t id, const Part& part) {
  Transaction all(*database_);
  Statement(*database_,
            "INSERT INTO step VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET seconds = seconds + excluded.seconds, "
            "note = excluded.note")
      .bind(id)
      .bind(part.step.name)
      .bind(part.step.seconds)
      .bind(part.step.note)
      .run();
  for (const Check& check : part.checks) {
    Statement known(*database_, "SELECT state FROM verdict WHERE night = ?1 AND name = ?2");
    if (known.bind(id).bind(check.name).step() && check_state_named("state", known.text(0)) >= check.state) continue;
    Statement(*database_, "INSERT OR REPLACE INTO verdict VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
        .bind(id)
        .bind(check.name)
        .bind(to_string(check.state))
        .bind(check.detail)
        .bind(check.repro)
        .bind(static_cast<std::int64_t>(check.of_a_kernel))
        .run();
  }
  for (const Series& series : part.series)
    Statement(*database_, "INSERT OR REPLACE INTO series VALUES (?1, ?2, ?3, ?4, ?5)")
        .bind(id)
        .bind(series.name)
        .bind(series.unit)
        .bind(list_text(series.values))
        .bind(static_cast<std::int64_t>(series.begins))
        .run();
  for (const Covered& covered : part.covered)
    Statement(*database_, "INSERT INTO covered VALUES (?1, ?2, ?3, ?4)")
        .bind(id)
        .bind(covered.kernel)
        .bind(fmt::format("{}", covered.first_case))
        .bind(outcomes_text(covered.outcomes))
        .run();
  all.commit();
}

void History::finish(std::int64_t id, const std::string& when) {
  Statement(*database_, "UPDATE night SET finished = ?1 WHERE id = ?2").bind(when).bind(id).run();
}

std::vector<std::int64_t> History::ids() const {
  std::vector<std::int64_t> ids;
  for (Statement read(*database_, "SELECT id FROM night ORDER BY id"); read.step();) ids.push_back(read.integer(0));
  return ids;
}

Night History::load(std::int64_t id) const {
  Night night;
  night.id = id;
  Statement read(*database_,
                 "SELECT started, finished, version, host, device, driver, toolkit, seed, generator_version, "
                 "shard_index, shard_count, kernels FROM night WHERE id = ?1");
  if (!read.bind(id).step()) throw InvalidInput("history", fmt::format("night {}", id), "is not recorded");
  night.started = time_of("started", read.text(0)), night.version = read.text(2);
  if (const std::string finished = read.text(1); !finished.empty()) night.finished = time_of("finished", finished);
  night.machine = {read.text(3), read.text(4), read.text(5), read.text(6)};
  night.campaign = {unsigned_of("seed", read.text(7)), unsigned_of("generator_version", read.text(8)),
                    unsigned_of("shard_index", read.text(9)), unsigned_of("shard_count", read.text(10))};
  if (night.campaign.shard_index >= night.campaign.shard_count)
    throw InvalidInput("history", fmt::format("shard_index, shard_count '{}/{}'", read.text(9), read.text(10)),
                       "is not I/N with 0 <= I < N");
  night.kernels = list_of<std::string>("kernels", read.text(11));
  Statement steps(*database_, "SELECT name, seconds, note FROM step WHERE night = ?1 ORDER BY rowid");
  for (steps.bind(id); steps.step();)
    night.steps.push_back({steps.text(0), seconds_of(steps.number(1)), steps.text(2)});
  Statement checks(*database_,
                   "SELECT name, state, detail, repro, of_a_kernel FROM verdict WHERE night = ?1 ORDER BY name");
  for (checks.bind(id); checks.step();)
    night.checks.push_back({checks.text(0), check_state_named("state", checks.text(1)), checks.text(2), checks.text(3),
                            checks.integer(4) != 0});
  Statement series(*database_, "SELECT name, unit, figures, begins FROM series WHERE night = ?1 ORDER BY name");
  for (series.bind(id); series.step();)
    night.series.push_back({series.text(0), series.text(1), figures_of(series.text(2)), series.integer(3) != 0});
  Statement covered(*database_, "SELECT kernel, first_case, outcomes FROM covered WHERE night = ?1 ORDER BY rowid");
  for (covered.bind(id); covered.step();)
    night.covered.push_back(
        {covered.text(0), unsigned_of("first_case", covered.text(1)), outcomes_from_text("outcomes", covered.text(2))});
  return night;
}

std::vector<Figures> History::before(std::int64_t id, const Series& series, int most) const {
  Statement read(
      *database_,
      "SELECT then_.started, s.figures, coalesce(v.state, 'passed') FROM series s "
      "JOIN night then_ ON then_.id = s.night JOIN night now_ ON now_.id = ?1 "
      "LEFT JOIN verdict v ON v.night = s.night AND v.name = s.name "
      "WHERE s.name = ?2 AND s.unit = ?3 AND s.night < ?1 AND s.night >= coalesce((SELECT max(b.night) FROM series b "
      "JOIN night first_ ON first_.id = b.night WHERE b.name = ?2 AND b.unit = ?3 AND b.night < ?1 AND b.begins "
      "AND first_.device = now_.device AND first_.driver = now_.driver AND first_.toolkit = now_.toolkit), 0) "
      "AND then_.device = now_.device AND then_.driver = now_.driver AND then_.toolkit = now_.toolkit "
      "ORDER BY s.night DESC");
  read.bind(id).bind(series.name).bind(series.unit);
  std::vector<Figures> figures;
  for (int good = 0; good < most && read.step(); good += figures.back().red ? 0 : 1)
    figures.push_back(
        {time_of("started", read.text(0)), figures_of(read.text(1)), is_red(check_state_named("state", read.text(2)))});
  std::reverse(figures.begin(), figures.end());
  return figures;
}

RedSince History::red_since(std::int64_t id, const std::string& check) const {
  Statement read(*database_,
                 "SELECT then_.started, v.state FROM verdict v JOIN night then_ ON then_.id = v.night "
                 "JOIN night now_ ON now_.id = ?1 WHERE v.name = ?2 AND v.night <= ?1 AND v.state <> 'skipped' "
                 "AND then_.device = now_.device ORDER BY v.night DESC");
  RedSince since;
  for (read.bind(id).bind(check); read.step();) {
    if (!is_red(check_state_named("state", read.text(1)))) {
      since.last_good = time_of("started", read.text(0));
      break;
    }
    since.first = time_of("started", read.text(0));
    ++since.nights;
  }
  return since;
}

}  // namespace attest
