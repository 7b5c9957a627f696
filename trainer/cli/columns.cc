// SPDX-License-Identifier: Apache-2.0
#include "trainer/cli/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "trainer/base/display_width.h"
#include "trainer/base/wrap.h"

namespace phalanx {
namespace {

constexpr std::size_t kIndent = 2;
constexpr std::size_t kDeepIndent = 6;  // of what stands below
constexpr std::size_t kMinRoom = 24;    // of the right column

std::string blanks(std::size_t count) { return std::string(count, ' '); }

bool is_number(const std::string& cell) {
  return cell.empty() || std::isdigit(static_cast<unsigned char>(cell.front())) != 0;
}

struct Column {
  std::size_t width = 0;
  bool is_numeric = true;
};

std::vector<Column> columns_of(std::span<const std::vector<std::string>> rows) {
  std::vector<Column> columns;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    columns.resize(std::max(columns.size(), rows[row].size()));
    for (std::size_t i = 0; i < rows[row].size(); ++i) {
      columns[i].width = std::max(columns[i].width, display_width(rows[row][i]));
      columns[i].is_numeric = columns[i].is_numeric && (row == 0 || is_number(rows[row][i]));
    }
  }
  return columns;
}

}  // namespace

std::string table(std::span<const std::vector<std::string>> rows) {
  const std::vector<Column> columns = columns_of(rows);
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding = blanks(columns[i].width - display_width(row[i]));
      line += blanks(kIndent) + (columns[i].is_numeric ? padding + row[i] : row[i] + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string two_columns(std::span<const Row> rows, const TextStyle& style) {
  std::size_t longest = 0;
  for (const auto& [left, right] : rows) longest = std::max(longest, display_width(left));
  std::size_t start = kIndent + longest + kIndent;
  const bool below = style.width > 0 && start + kMinRoom > style.width;
  if (below) start = kDeepIndent;

  std::string text;
  for (const auto& [left, right] : rows) {
    std::string line = blanks(kIndent) + left;
    if (!right.empty()) line += below ? "\n" + blanks(start) : blanks(start - display_width(line));
    line += right;
    text += (style.width > 0 ? config::wrap(line, style.width, start) : line) + "\n";
  }
  return text;
}

}  // namespace phalanx
