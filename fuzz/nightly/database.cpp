#include "database.h"

#include <fmt/format.h>

#include "attest/problem/error.h"

namespace attest {

Database::Database(const std::filesystem::path& path) : path_(path.string()) {
  const int code =
      sqlite3_open_v2(path_.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXRESCODE, nullptr);
  try {
    if (code != SQLITE_OK) fail(code);
    constexpr int wait_ms = 10'000;  // for another process that commits
    sqlite3_busy_timeout(db_, wait_ms);
    execute("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON");
    Statement check(*this, "PRAGMA quick_check(1)");
    if (!check.step() || check.text(0) != "ok") fail(SQLITE_CORRUPT);
  } catch (...) {
    sqlite3_close(db_);
    throw;
  }
}

void Database::take_over() { execute("PRAGMA journal_mode = WAL"); }

Database::~Database() { sqlite3_close(db_); }

void Database::fail(int code) const {
  const std::string what = db_ ? sqlite3_errmsg(db_) : sqlite3_errstr(code);
  switch (code & 0xFF) {  // the rest says more about it
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      throw InvalidInput("history", fmt::format("'{}'", path_),
                         "is no database of attest, or damaged; move it away to begin a new one");
    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
      throw InvalidInput("history", fmt::format("'{}'", path_), fmt::format("has not the tables of attest: {}", what));
    default:
      throw EnvironmentError(fmt::format("history: '{}': {}", path_, what));
  }
}

void Database::execute(const char* sql) {
  if (const int code = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr); code != SQLITE_OK) fail(code);
}

Statement::Statement(Database& database, const char* sql) : database_(database) {
  const int code = sqlite3_prepare_v2(database.db_, sql, -1, &statement_, nullptr);
  if (code != SQLITE_OK) database.fail(code);
}

Statement& Statement::bind(std::int64_t value) {
  sqlite3_bind_int64(statement_, ++bound_, value);
  return *this;
}

Statement& Statement::bind(double value) {
  sqlite3_bind_double(statement_, ++bound_, value);
  return *this;
}

Statement& Statement::bind(std::string_view value) {
  sqlite3_bind_text64(statement_, ++bound_, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code != SQLITE_ROW && code != SQLITE_DONE) database_.fail(code);
  return code == SQLITE_ROW;
}

std::string Statement::text(int column) const {
  const auto* const bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return bytes ? std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))) : "";
}

Transaction::~Transaction() {
  if (!open_) return;
  try {
    database_.execute("ROLLBACK");
  } catch (...) {  // it rolls back by itself where the database is next opened
  }
}

void Transaction::commit() {
  database_.execute("COMMIT");
  open_ = false;
}

}  // namespace attest
