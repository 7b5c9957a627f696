// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "tests/trainer/parallel/fsdp/models.h"

/// Models that orders of passes are tested with beside those of sharding.
namespace phalanx {

/// Normalizes over the batch: autograd saves its buffers, which each pass moves.
class BatchNormed : public fsdp::testing::AnyModel {
 public:
  BatchNormed();

  /// `rows`: [rows, fsdp::testing::kWidth].
  at::Tensor loss(const at::Tensor& rows);
};

/// Two units that share nothing, each with a loss of its own, as a critic and an actor have.
class Forked : public fsdp::testing::AnyModel {
 public:
  Forked();

  /// `rows`: [rows, fsdp::testing::kWidth].
  at::Tensor loss_of_left(const at::Tensor& rows);
  at::Tensor loss_of_right(const at::Tensor& rows);
};

}  // namespace phalanx
