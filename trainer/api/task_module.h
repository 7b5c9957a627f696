// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace torch::nn {
class Module;
}

namespace phalanx {

/// A module that a task owns beside the model: a critic, a teacher, a head. It is the child
/// `task.NAME` of the model's module, so that it is initialised, moved, wrapped, sharded, saved and
/// resumed with the model; an export leaves it out.
struct TaskModule {
  std::string name;  ///< No dot in it; parameters are called "task.NAME.weight".
  std::shared_ptr<torch::nn::Module> module;
  /// Whether the optimizer moves it. One that is not trained requires no gradients and computes as
  /// in evaluation; it is broadcast and saved all the same.
  bool is_trained = true;
  /// Where a new run takes its first weights from, by their names in the module: a run, a
  /// checkpoint, a file of safetensors or a folder of Hugging Face's libraries. A resumed run has
  /// them in its checkpoint.
  std::optional<std::filesystem::path> load_from = {};
};

}  // namespace phalanx
