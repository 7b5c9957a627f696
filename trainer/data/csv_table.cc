// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/csv_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/base/xxh3.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

// Takes the rows of a CSV file apart.
class CsvReader {
 public:
  CsvReader(std::string_view field, const std::filesystem::path& path)
      : field_(field), path_(path), text_(read_text(path)) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.starts_with(kByteOrderMark)) place_ = kByteOrderMark.size();
  }

  /// The cells of the next row that is not empty; nothing at the end.
  std::optional<std::vector<std::string>> next() {
    while (place_ < text_.size()) {
      line_ = next_line_;
      std::vector<std::string> cells{cell()};
      while (place_ < text_.size() && text_[place_] == ',') {
        ++place_;
        cells.push_back(cell());
      }
      end_row();
      if (cells.size() > 1 || !cells.front().empty()) return cells;
    }
    return std::nullopt;
  }

  [[noreturn]] void fail(const std::string& problem) const {
    throw UserError(fmt::format("{}: '{}', line {}: {}", field_, path_.string(), line_, problem));
  }

 private:
  std::string cell() {
    if (place_ < text_.size() && text_[place_] == '"') return quoted_cell();
    const std::size_t end = std::min(text_.find_first_of(",\r\n", place_), text_.size());
    std::string found = text_.substr(place_, end - place_);
    place_ = end;
    return found;
  }

  // Two quotes in a cell stand for one.
  std::string quoted_cell() {
    std::string found;
    for (++place_; place_ < text_.size(); ++place_) {
      if (text_[place_] == '\n') ++next_line_;
      if (text_[place_] == '"') {
        ++place_;
        if (place_ == text_.size() || text_[place_] != '"') return found;
      }
      found += text_[place_];
    }
    fail("a quote is not closed");
  }

  void end_row() {
    if (place_ < text_.size() && text_[place_] == '\r') ++place_;
    if (place_ == text_.size()) return;
    if (text_[place_] != '\n') fail("a cell goes on behind its closing quote");
    ++place_;
    ++next_line_;
  }

  const std::string_view field_;
  const std::filesystem::path& path_;
  const std::string text_;
  std::size_t place_ = 0;
  int64_t line_ = 1;  // Of the row.
  int64_t next_line_ = 1;
};

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

std::vector<std::string> columns_of(CsvReader& reader) {
  const auto heading = reader.next();
  if (!heading)
    reader.fail("the file is empty: a heading with the names of its columns is missing");
  std::set<std::string_view> known;
  std::vector<std::string> columns;
  for (const std::string& cell : *heading) {
    columns.emplace_back(trimmed(cell));
    if (columns.back().empty()) {
      reader.fail(fmt::format("column {} has no name", columns.size()));
    }
  }
  for (const std::string& column : columns) {
    if (!known.insert(column).second) reader.fail(fmt::format("two columns are '{}'", column));
  }
  return columns;
}

double number_of(const CsvReader& reader, const std::string& column, std::string_view cell) {
  const std::string_view text = trimmed(cell);
  if (text.empty()) reader.fail(fmt::format("the column '{}' is empty", column));
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) {
    reader.fail(fmt::format("the column '{}' is no number: '{}'", column, text));
  }
  return number;
}

}  // namespace

std::string CsvTable::fingerprint() const {
  Xxh3 hash;
  for (const std::string& column : columns) hash.add(column + "\n");
  hash.add(std::as_bytes(std::span(values)));
  return fmt::format("{} rows {}", rows(), hash.digits64());
}

CsvTable read_csv_table(std::string_view field, const std::filesystem::path& path) {
  try {
    CsvReader reader(field, path);
    CsvTable table{.columns = columns_of(reader), .values = {}};
    while (const auto row = reader.next()) {
      if (row->size() != table.columns.size()) {
        reader.fail(fmt::format("{} cell{}, but the heading has {}", row->size(),
                                row->size() == 1 ? "" : "s", table.columns.size()));
      }
      for (std::size_t i = 0; i < row->size(); ++i) {
        table.values.push_back(number_of(reader, table.columns[i], (*row)[i]));
      }
    }
    if (table.values.empty()) reader.fail("no row follows the heading");
    return table;
  } catch (const IoError& error) {
    throw UserError(fmt::format("{}: {}", field, error.what()));
  }
}

std::size_t column_of(const CsvTable& table, std::string_view field, std::string_view name) {
  const auto found = std::find(table.columns.begin(), table.columns.end(), name);
  if (found != table.columns.end()) {
    return static_cast<std::size_t>(found - table.columns.begin());
  }
  throw UserError(fmt::format("{}: the table has no column '{}'; it has: {}", field, name,
                              fmt::join(table.columns, ", ")));
}

}  // namespace phalanx
