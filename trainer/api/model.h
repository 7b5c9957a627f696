// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <string_view>
#include <vector>

#include "trainer/api/model_base.h"

namespace phalanx {

/// Base of every model: a torch module that drives the tasks whose interfaces it lists, as in
/// `class Gpt2 : public Model<CausalLanguageModel>`. An interface is an abstract class with a
/// `static constexpr std::string_view kInterface`.
template <class... Interfaces>
class Model : public torch::nn::Module, public ModelBase, public Interfaces... {
 public:
  /// Names of what this model can do, for the check before launch.
  static std::vector<std::string_view> interfaces() { return {Interfaces::kInterface...}; }

  torch::nn::Module& module() final { return *this; }
};

}  // namespace phalanx
