// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "trainer/api/loss.h"

namespace phalanx::pipeline {

/// What stages before the last one know of its losses: the names and dtypes of their parts.
class LossForm {
 public:
  explicit LossForm(const Loss& loss);
  /// Reads `text`. Throws std::invalid_argument.
  explicit LossForm(const std::string& text);

  /// For other stages.
  std::string text() const;
  bool operator==(const LossForm&) const = default;

  /// Scalars of 0, one a part.
  std::vector<at::Tensor> zeros() const;
  /// A loss of such parts. `values` are as many.
  Loss with(const std::vector<at::Tensor>& values) const;

 private:
  struct Part {
    std::string name;
    at::ScalarType dtype = at::kFloat;
    bool operator==(const Part&) const = default;
  };

  std::vector<Part> parts_;
};

}  // namespace phalanx::pipeline
