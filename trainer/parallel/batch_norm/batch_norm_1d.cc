// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/batch_norm/batch_norm_1d.h"

#include <ATen/Context.h>
#include <ATen/ops/batch_norm.h>
#include <c10/util/Exception.h>

#include <optional>

#include "trainer/parallel/batch_norm/common_statistics.h"
#include "trainer/parallel/batch_norm/statistics_scope.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

void BatchNorm1dImpl::_check_input_dim(const at::Tensor& input) {
  TORCH_CHECK(input.dim() == 2 || input.dim() == 3, "expected 2D or 3D input (got ", input.dim(),
              "D input)");
}

at::Tensor BatchNorm1dImpl::forward(const at::Tensor& input) {
  _check_input_dim(input);
  const std::optional<Ranks>& ranks = batch_norm::StatisticsScope::current();
  const bool is_common = is_training() && ranks && !ranks->is_single_rank();
  if (!is_common || batch_norm::values_a_channel(input) != 1) {
    return BatchNormImplBase<1, BatchNorm1dImpl>::forward(input);
  }
  // What LibTorch's forward does behind its check of the number of values.
  double momentum = options.momentum().value_or(0);
  if (num_batches_tracked.defined()) {
    num_batches_tracked += 1;
    if (!options.momentum()) momentum = 1 / num_batches_tracked.item<double>();
  }
  return at::batch_norm(input, weight, bias, running_mean, running_var, /*training=*/true, momentum,
                        options.eps(), at::globalContext().userEnabledCuDNN());
}

}  // namespace phalanx
