// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace phalanx {

/// What a step does where a device decides whether it is skipped (Optimizer::step_unless), and no
/// kernel reads `skip`: numbers that change nothing take the place of those that must not be.
/// Without a defined `skip` nothing is replaced.
class Unless {
 public:
  explicit Unless(const at::Tensor& skip);

  /// These, or tensors of `number`.
  void replace(std::vector<at::Tensor>& tensors, double number) const;

  /// These, or `others`, which may be the same.
  std::vector<at::Tensor> or_else(std::vector<at::Tensor> tensors, at::TensorList others) const;

  /// Multiplies in place by `factor`, or by 1; at least one tensor. The factor is not rounded to
  /// the tensors' dtype, in which 0.999 may be 1, as some of LibTorch's operators do it.
  void multiply(at::TensorList tensors, double factor) const;

 private:
  at::Tensor is_skipped_;
};

}  // namespace phalanx
