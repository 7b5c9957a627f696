// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "trainer/api/optimizer.h"

namespace phalanx {

/// Splits each group so that all its parameters share one dtype and one device, which is what one
/// call of a fused ATen kernel takes. Labels, decay and order are kept.
std::vector<ParameterGroup> split_by_dtype_and_device(std::vector<ParameterGroup> groups);

/// Gradients, and the positions of their parameters in a group.
struct Gradients {
  std::vector<size_t> positions;  ///< Ascending.
  std::vector<at::Tensor> tensors;
};

/// The gradients of those parameters that have one, in the parameters' dtype: that is what the
/// fused kernels take, and gradients may have been kept in a lower precision. The other parameters
/// are left alone in this step.
Gradients gradients_in(const std::vector<NamedParameter>& parameters);

/// The parameters' tensors, one by one.
std::vector<at::Tensor> tensors_of(const std::vector<NamedParameter>& parameters);

/// The tensors at ascending positions of a list, which outlives this. Copied only where these are
/// not all: in most steps every parameter has a gradient.
class TensorsAt {
 public:
  /// An empty list, a state that is not kept, stays empty.
  TensorsAt(const std::vector<at::Tensor>& tensors, const std::vector<size_t>& positions);

  operator at::TensorList() const { return all_ != nullptr ? *all_ : some_; }  // NOLINT

 private:
  const std::vector<at::Tensor>* all_ = nullptr;
  std::vector<at::Tensor> some_;
};

/// A state of zeros, in the parameter's layout.
at::Tensor zero_state(const at::Tensor& parameter);

/// A counter of steps as the fused kernels keep it: a float32 scalar on the parameter's device,
/// whatever the parameter's dtype (torch/optim/adam.py, _get_scalar_dtype(is_fused=True)).
at::Tensor zero_steps(const at::Tensor& parameter);

/// Adds 1 to each counter; all are on one device.
void count_step(at::TensorList steps);

/// Takes it back where `skip` (Optimizer::step_unless) is 1 (torch/optim/adam.py, _fused_adam).
void uncount_step(at::TensorList steps, const at::Tensor& skip);

}  // namespace phalanx
