// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace phalanx {

/// What a task computes for a micro-batch: one scalar, or several with names that are summed for
/// the gradient and logged apart. Each is a mean over the micro-batch's `Batch::tokens` terms.
class Loss {
 public:
  using Parts = std::vector<std::pair<std::string, at::Tensor>>;

  Loss(at::Tensor value) {  // NOLINT: a loss is a tensor
    parts_.emplace_back("loss", std::move(value));
  }
  /// Named losses, for example {{"policy", a}, {"value", b}}. Throws std::invalid_argument when
  /// empty or when two have one name; a part called "loss" is refused beside others, for that is
  /// the name of the sum. Every micro-batch has the same parts in the same order.
  Loss(Parts parts);  // NOLINT: as above

  const Parts& parts() const { return parts_; }

  /// The sum of the parts, in their order: the scalar that is differentiated.
  at::Tensor total() const;

 private:
  Parts parts_;
};

}  // namespace phalanx
