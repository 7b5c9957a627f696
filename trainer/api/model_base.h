// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace torch::nn {
class Module;
}

namespace phalanx {

/// A model as the loop sees it; cheap to include. A task reaches its own interface by dynamic_cast.
class ModelBase {
 public:
  virtual ~ModelBase() = default;

  /// The module that holds the parameters.
  virtual torch::nn::Module& module() = 0;
};

}  // namespace phalanx
