// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace phalanx {

/// The rows of a tensor [..., rows, columns] that a contiguous part of its flattened elements
/// touches: what one rank can say about sums over rows and columns.
class RowWindow {
 public:
  /// The rows that elements [begin, end) of a tensor of at least two dimensions touch.
  RowWindow(const std::vector<int64_t>& shape, int64_t begin, int64_t end);

  /// The part within its rows, [rows touched, columns]; zeros before and behind it.
  at::Tensor around(const at::Tensor& part) const;
  /// The part's elements of such a window, flat.
  at::Tensor part_of(const at::Tensor& window) const;

  /// Sums of squares of a window: of every row of the tensor [..., rows, 1] and of every column
  /// [..., 1, columns], in float64; 0 for what is outside of the window.
  at::Tensor row_squares(const at::Tensor& window) const;
  at::Tensor column_squares(const at::Tensor& window) const;

  /// What the window's rows have of a tensor [..., rows, 1]: [rows touched, 1]. `rows` may be one
  /// number a matrix, [..., 1, 1].
  at::Tensor of_rows(const at::Tensor& rows) const;
  /// What they have of a tensor [..., 1, columns]: [rows touched or 1, columns].
  at::Tensor of_columns(const at::Tensor& columns) const;

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  /// Shapes of one number a row, and of one a column.
  std::vector<int64_t> row_shape() const { return shaped(rows_, 1); }
  std::vector<int64_t> column_shape() const { return shaped(1, columns_); }

 private:
  std::vector<int64_t> shaped(int64_t rows, int64_t columns) const;
  bool is_whole() const { return touched_ == matrices_ * rows_ && size_ == touched_ * columns_; }
  // Which matrix each row of the window is of.
  at::Tensor matrix_of_rows(at::Device device) const;

  std::vector<int64_t> leading_;  ///< The dimensions before rows and columns.
  int64_t matrices_ = 1;          ///< Their product.
  int64_t rows_ = 0;
  int64_t columns_ = 0;
  int64_t first_row_ = 0;  ///< Counted over all matrices.
  int64_t touched_ = 0;
  int64_t offset_ = 0;  ///< Of the part in its first row.
  int64_t size_ = 0;    ///< Of the part.
};

}  // namespace phalanx
