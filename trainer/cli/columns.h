// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "trainer/cli/terminal.h"

namespace phalanx {

/// A line of a list in two columns: what there is, and what it is.
struct Row {
  std::string left;
  std::string right;
};

/// Rows below each other, indented by two blanks: the left column as wide as its longest, the right
/// one wrapped; below the left one if it has no room beside it. Every line ends.
std::string two_columns(std::span<const Row> rows, const TextStyle& style);

/// Rows of cells below each other, each column as wide as its widest; numbers (cells that begin
/// with a digit, in a column where all but the first row's do) to the right. Every line ends.
std::string table(std::span<const std::vector<std::string>> rows);

}  // namespace phalanx
