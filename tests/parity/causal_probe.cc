// SPDX-License-Identifier: Apache-2.0
// Runs a causal language model for a Python test: `causal_probe CONFIG INPUT OUTPUT` makes the
// model that a config.json of Hugging Face's describes, reads its weights and a batch (`tokens`,
// `targets`, and `positions` where documents are kept apart) from a safetensors file, and writes
// logits, the mean loss, the gradient of every weight, and every weight after three steps of AdamW,
// by their names there.

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <exception>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/interfaces/token_loss.h"
#include "tests/models/causal_model.h"
#include "tests/tensors.h"
#include "trainer/api/modules.h"
#include "trainer/api/optimizer.h"
#include "trainer/api/parameters.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/config/syntax/parse_json.h"
#include "trainer/config/tree/schema.h"
#include "trainer/hugging_face/model_section.h"
#include "trainer/io/file.h"
#include "trainer/registry/hugging_face.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

using Tensors = std::map<std::string, at::Tensor>;

/// A model and the names of its weights there.
class Probe {
 public:
  Probe(const std::string& name, const config::Node& section)
      : names_(hugging_face_model_of(hugging_face_model(name), section)), model_(name, section) {}

  void fill(const Tensors& weights) {
    const at::ScalarType dtype = weights.at(theirs(named_parameters(model_).front())).scalar_type();
    modules::convert_to(model_.module(), dtype);
    const at::NoGradGuard no_grad;
    for (const auto& parameter : named_parameters(model_)) {
      parameter.tensor.copy_(weights.at(theirs(parameter)));
    }
  }

  HiddenStates hidden(const Tensors& batch) {
    const auto positions = batch.find("positions");
    return *model_.interface().hidden_states(
        batch.at("tokens"), positions == batch.end() ? at::Tensor() : positions->second);
  }

  void take_steps(const Tensors& batch) {
    const auto& adamw = Registry<Optimizer>::instance().at("adamw");
    config::Node section = adamw.declaration()->defaults();
    section.set("eps", config::Node::real(1e-5));
    const auto optimizer = adamw.make(section);
    optimizer->bind(default_parameter_groups(model_));
    for (int step = 0; step < 3; ++step) {
      for (auto& parameter : named_parameters(model_)) parameter.tensor.mutable_grad().reset();
      loss_of(hidden(batch), batch).backward();
      optimizer->step(optimizer->base_lr());
    }
  }

  static at::Tensor loss_of(const HiddenStates& hidden, const Tensors& batch) {
    const at::Tensor& targets = batch.at("targets");
    return token_loss(hidden, targets, targets.ne(-100).sum().item<int64_t>());
  }

  void add(const std::string& kind, std::vector<ShardedTensorView>& views) {
    for (const auto& parameter : named_parameters(model_)) {
      const bool is_gradient = kind == "gradient.";
      views.push_back(
          whole_tensor(kind + theirs(parameter),
                       is_gradient ? parameter.tensor.grad().contiguous() : parameter.tensor));
    }
  }

 private:
  std::string theirs(const NamedParameter& parameter) const {
    return hugging_face_name(names_, parameter.name);
  }

  HuggingFaceModel names_;
  CausalModel model_;
};

void run(const std::vector<std::string>& arguments) {
  at::set_num_threads(1);
  const Tensors input = read_safetensors(arguments.at(1));
  const config::Node theirs = config::parse_json(read_text(arguments.at(0)), arguments.at(0));
  const std::string name = model_of_type(theirs.find("model_type")->text);
  config::Node section = section_of_hugging_face(hugging_face_model(name), theirs, input.size());
  section.set("name", config::Node::string(name));
  config::Node resolved = resolved_model(std::move(section));
  std::erase_if(resolved.entries, [](const auto& entry) { return entry.key == "name"; });

  Probe probe(name, resolved);
  probe.fill(input);
  const HiddenStates hidden = probe.hidden(input);
  const at::Tensor logits = tensors::linear(hidden.states, hidden.head);
  const at::Tensor loss = Probe::loss_of(hidden, input);
  loss.backward();
  std::vector<ShardedTensorView> views{whole_tensor("logits", logits), whole_tensor("loss", loss)};
  probe.add("gradient.", views);
  probe.take_steps(input);
  probe.add("weight.", views);
  write_safetensors(arguments.at(2), views);
}

}  // namespace
}  // namespace phalanx

int main(int argc, char** argv) try {
  phalanx::run({argv + 1, argv + argc});
} catch (const std::exception& error) {
  std::cerr << "causal_probe: " << error.what() << "\n";
  return 1;
}
