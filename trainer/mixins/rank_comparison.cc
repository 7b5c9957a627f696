// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/rank_comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/headeronly/version.h>

#include <string>

#include "trainer/api/parameters.h"
#include "trainer/base/version.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/tree/node.h"
#include "trainer/io/files_of_data.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/ranks/collectives/agreement.h"

namespace phalanx {
namespace {

// One line a tensor: what replicas must have in common before their values can be made alike.
std::string describe_model(ModelBase& model) {
  std::string text;
  for (const auto& view : model_views(model)) {
    text += fmt::format("{}: {} [{}]\n", view.name, c10::toString(view.dtype),
                        fmt::join(view.shape, ", "));
  }
  return text;
}

std::string describe_data(const TrainerBase& trainer) {
  if (trainer.purpose() != Purpose::training) return {};
  std::string text = fmt::format("training: {}\n", trainer.training_data().fingerprint());
  if (const auto* validation = trainer.validation_data()) {
    text += fmt::format("validation: {}\n", validation->fingerprint());
  }
  return text;
}

// Without the names that come from how a rank was started, which says nothing of the training.
std::string describe_config(const TrainerBase& trainer) {
  config::Node config = trainer.resolved_config();
  for (const char* name : {"exp_name", "exp_dir"}) config.set(name, config::Node::null());
  return config::print(config);
}

}  // namespace

void compare_ranks(const TrainerBase& trainer) {
  const Ranks& ranks = trainer.ranks();
  ranks.set_activity("the comparison of the ranks");
  require_agreement(ranks,
                    {{"the program", describe_program()},
                     {"versions", fmt::format("Phalanx {}, LibTorch {}", kVersion, TORCH_VERSION)},
                     {"the device", c10::DeviceTypeName(trainer.device().type())},
                     {"the config", describe_config(trainer)},
                     {"the model", describe_model(trainer.model())},
                     {"the data", describe_data(trainer), files_of_data}});
}

}  // namespace phalanx
