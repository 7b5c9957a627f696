// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// Numbers in rows and named columns.
struct CsvTable {
  std::vector<std::string> columns;
  std::vector<double> values;  ///< Row after row.
  std::filesystem::path path;
  std::vector<int64_t> lines;  ///< Where each row begins in the file, from 1 on.

  int64_t rows() const { return static_cast<int64_t>(values.size() / columns.size()); }
  double at(int64_t row, std::size_t column) const {
    return values.at(static_cast<std::size_t>(row) * columns.size() + column);
  }
  /// "'t.csv', line 3": where a row is, for errors.
  std::string place(int64_t row) const;
  /// Equal for equal tables: what a resumed run is compared by (Dataset::fingerprint).
  std::string fingerprint() const;
};

/// Reads a table of numbers: a heading, then rows, as RFC 4180 has them (quotes around a cell, line
/// ends of both kinds); empty lines are left out. Throws UserError, with file, line and column, for
/// a cell that is empty or no finite number, for a row of another length than the heading's, for a
/// column that is there twice or has no name, and for a table without rows. `field` is the
/// config's.
CsvTable read_csv_table(std::string_view field, const std::filesystem::path& path);

/// The heading alone, of a file as above.
std::vector<std::string> read_csv_heading(std::string_view field,
                                          const std::filesystem::path& path);

/// The places of the columns of these names, which the table may have in any order. Throws
/// UserError, with file and both lists, where the table lacks one, or has one that is neither among
/// them nor among `others`.
std::vector<std::size_t> columns_of(const CsvTable& table, std::string_view field,
                                    std::span<const std::string> names,
                                    std::span<const std::string> others = {});

/// The place of a column. Throws UserError, which names those that the table has.
std::size_t column_of(const CsvTable& table, std::string_view field, std::string_view name);

}  // namespace phalanx
