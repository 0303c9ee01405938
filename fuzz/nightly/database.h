// SQLite with its errors as exceptions.
#pragma once
#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace attest {

/// A file of SQLite's. What was committed survives the end of the process at any instruction, and of the machine
/// (synchronous = FULL). Every failure throws: InvalidInput naming `history` where the file is no database or
/// damaged, EnvironmentError where the disk, a permission or another process refuses.
class Database {
 public:
  explicit Database(const std::filesystem::path& path);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// WAL mode, which the file keeps: for one that is known to be ours, outside a transaction.
  void take_over();
  /// One statement or several, without parameters or rows.
  void execute(const char* sql);
  std::int64_t last_id() const { return sqlite3_last_insert_rowid(db_); }
  [[noreturn]] void fail(int code) const;

 private:
  friend class Statement;
  std::string path_;
  sqlite3* db_ = nullptr;
};

/// A statement whose parameters are ?1, ?2, ... in order of bind() and whose columns are read in order of next column.
class Statement {
 public:
  Statement(Database& database, const char* sql);
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(std::int64_t value);
  Statement& bind(double value);
  Statement& bind(std::string_view value);

  /// To the next row; false where there is none.
  bool step();
  /// step() of what has no rows.
  void run() { step(); }

  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double number(int column) const { return sqlite3_column_double(statement_, column); }
  std::string text(int column) const;

 private:
  Database& database_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

/// All of what is written while it lives, or, unless commit() was reached, none of it.
class Transaction {
 public:
  explicit Transaction(Database& database) : database_(database) { database_.execute("BEGIN IMMEDIATE"); }
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace attest
