// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "models/interfaces/causal_language_model.h"
#include "trainer/api/model_base.h"
#include "trainer/config/tree/node.h"

namespace phalanx {

/// A registered CausalLanguageModel by its interfaces: the headers of a model take ten seconds to
/// compile.
class CausalModel : public ModelBase {
 public:
  /// `section` has all fields of the model.
  CausalModel(const std::string& name, const config::Node& section);

  torch::nn::Module& module() override { return model_->module(); }
  CausalLanguageModel& interface() { return interface_; }

 private:
  std::shared_ptr<ModelBase> model_;
  CausalLanguageModel& interface_;  ///< The model's.
};

}  // namespace phalanx
