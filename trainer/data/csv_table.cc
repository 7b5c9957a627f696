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
#include "trainer/io/files_of_data.h"

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

  int64_t line() const { return line_; }  ///< The line of the row that was read last.

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
  int64_t line_ = 1;  // Where the row begins.
  int64_t next_line_ = 1;
};

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

std::vector<std::string> heading_of(CsvReader& reader) {
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

// What reads a file, with errors of the file as the user's.
template <class Read>
auto reading(std::string_view field, const Read& read) {
  try {
    return read();
  } catch (const IoError& error) {
    throw UserError(fmt::format("{}: {}", field, error.what()));
  }
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

std::string CsvTable::place(int64_t row) const {
  return fmt::format("'{}', line {}", path.string(), lines.at(static_cast<std::size_t>(row)));
}

CsvTable read_csv_table(std::string_view field, const std::filesystem::path& path) {
  return reading(field, [&] {
    CsvReader reader(field, path);
    note_files_of_data({path});
    CsvTable table{.columns = heading_of(reader), .values = {}, .path = path, .lines = {}};
    while (const auto row = reader.next()) {
      if (row->size() != table.columns.size()) {
        reader.fail(fmt::format("{} cell{}, but the heading has {}", row->size(),
                                row->size() == 1 ? "" : "s", table.columns.size()));
      }
      for (std::size_t i = 0; i < row->size(); ++i) {
        table.values.push_back(number_of(reader, table.columns[i], (*row)[i]));
      }
      table.lines.push_back(reader.line());
    }
    if (table.values.empty()) reader.fail("no row follows the heading");
    return table;
  });
}

std::vector<std::string> read_csv_heading(std::string_view field,
                                          const std::filesystem::path& path) {
  return reading(field, [&] {
    CsvReader reader(field, path);
    return heading_of(reader);
  });
}

std::vector<std::size_t> columns_of(const CsvTable& table, std::string_view field,
                                    std::span<const std::string> names,
                                    std::span<const std::string> others) {
  const auto is_in = [](const auto& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  const bool lacks_one = !std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return is_in(table.columns, name);
  });
  const bool has_another = !std::all_of(
      table.columns.begin(), table.columns.end(),
      [&](const std::string& name) { return is_in(names, name) || is_in(others, name); });
  if (lacks_one || has_another) {
    throw UserError(fmt::format(
        "{}: '{}' must have the columns {}{}, in any order; it has {}", field, table.path.string(),
        fmt::join(names, ", "),
        others.empty() ? "" : fmt::format(" (and may have {})", fmt::join(others, ", ")),
        fmt::join(table.columns, ", ")));
  }
  std::vector<std::size_t> places;
  for (const std::string& name : names) places.push_back(column_of(table, field, name));
  return places;
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
