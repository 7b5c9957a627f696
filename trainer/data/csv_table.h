// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// Numbers in rows and named columns.
struct CsvTable {
  std::vector<std::string> columns;
  std::vector<double> values;  ///< Row after row.

  int64_t rows() const { return static_cast<int64_t>(values.size() / columns.size()); }
  double at(int64_t row, std::size_t column) const {
    return values.at(static_cast<std::size_t>(row) * columns.size() + column);
  }
  /// Equal for equal tables: what a resumed run is compared by (Dataset::fingerprint).
  std::string fingerprint() const;
};

/// Reads a table of numbers: a heading, then rows, as RFC 4180 has them (quotes around a cell, line
/// ends of both kinds); empty lines are left out. Throws UserError, with file, line and column, for
/// a cell that is empty or no finite number, for a row of another length than the heading's, for a
/// column that is there twice or has no name, and for a table without rows. `field` is the
/// config's.
CsvTable read_csv_table(std::string_view field, const std::filesystem::path& path);

/// The place of a column. Throws UserError, which names those that the table has.
std::size_t column_of(const CsvTable& table, std::string_view field, std::string_view name);

}  // namespace phalanx
