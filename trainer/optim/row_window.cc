// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/row_window.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/zeros.h>

#include <functional>
#include <numeric>

namespace phalanx {
namespace {

at::Tensor squares(const at::Tensor& tensor, int64_t dimension) {
  return at::norm(tensor, 2, {dimension}).square_().to(at::kDouble);
}

}  // namespace

RowWindow::RowWindow(const std::vector<int64_t>& shape, int64_t begin, int64_t end)
    : leading_(shape.begin(), shape.end() - 2),
      matrices_(std::accumulate(leading_.begin(), leading_.end(), int64_t{1}, std::multiplies<>())),
      rows_(shape[shape.size() - 2]),
      columns_(shape.back()),
      size_(end - begin) {
  if (size_ == 0) return;
  first_row_ = begin / columns_;
  offset_ = begin % columns_;
  touched_ = (end - 1) / columns_ + 1 - first_row_;
}

at::Tensor RowWindow::around(const at::Tensor& part) const {
  if (size_ == touched_ * columns_) return part.reshape({touched_, columns_});
  const at::Tensor window = at::zeros({touched_ * columns_}, part.options());
  window.narrow(0, offset_, size_).copy_(part.reshape({-1}));
  return window.view({touched_, columns_});
}

at::Tensor RowWindow::part_of(const at::Tensor& window) const {
  return window.reshape({-1}).narrow(0, offset_, size_);
}

at::Tensor RowWindow::row_squares(const at::Tensor& window) const {
  const at::Tensor all = at::zeros({matrices_ * rows_}, window.options().dtype(at::kDouble));
  if (size_ > 0) all.narrow(0, first_row_, touched_).copy_(squares(window, 1));
  return all.view(row_shape());
}

at::Tensor RowWindow::column_squares(const at::Tensor& window) const {
  if (is_whole() && size_ > 0) {
    return squares(window.view({matrices_, rows_, columns_}), 1).view(column_shape());
  }
  const at::Tensor all = at::zeros({matrices_, columns_}, window.options().dtype(at::kDouble));
  if (size_ > 0 && matrices_ == 1) all[0].copy_(squares(window, 0));
  if (size_ > 0 && matrices_ > 1) {
    all.index_add_(0, matrix_of_rows(window.device()), window.to(at::kDouble).square());
  }
  return all.view(column_shape());
}

at::Tensor RowWindow::of_rows(const at::Tensor& rows) const {
  if (rows.size(-2) == rows_) return rows.reshape({-1, 1}).narrow(0, first_row_, touched_);
  if (matrices_ == 1) return rows.reshape({1, 1});
  return rows.reshape({-1, 1}).index_select(0, matrix_of_rows(rows.device()));
}

at::Tensor RowWindow::of_columns(const at::Tensor& columns) const {
  if (matrices_ == 1) return columns.reshape({1, columns_});
  return columns.reshape({-1, columns_}).index_select(0, matrix_of_rows(columns.device()));
}

std::vector<int64_t> RowWindow::shaped(int64_t rows, int64_t columns) const {
  std::vector<int64_t> shape = leading_;
  shape.push_back(rows);
  shape.push_back(columns);
  return shape;
}

at::Tensor RowWindow::matrix_of_rows(at::Device device) const {
  return at::arange(first_row_, first_row_ + touched_, at::TensorOptions(at::kLong).device(device))
      .floor_divide_(rows_);
}

}  // namespace phalanx
