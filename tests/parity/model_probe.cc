// SPDX-License-Identifier: Apache-2.0
// Runs a language model for a Python test: `model_probe CONFIG INPUT OUTPUT LR` makes the model
// that a config.json of Hugging Face's describes, and reads its weights and a batch from a
// safetensors file. It writes logits, the mean loss, the gradient of every weight, and every weight
// after three steps of AdamW, by their names there. The batch of a causal model is `batch.tokens`,
// `batch.targets`, and `batch.positions` to keep documents apart; that of a sequence to sequence
// model `batch.inputs`, `batch.mask`, `batch.outputs` and `batch.targets`.

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/interfaces/causal_language_model.h"
#include "models/interfaces/sequence_to_sequence_model.h"
#include "models/interfaces/token_loss.h"
#include "tests/tensors.h"
#include "trainer/api/modules.h"
#include "trainer/api/optimizer.h"
#include "trainer/api/parameters.h"
#include "trainer/checkpoint/format/safetensors.h"
#include "trainer/config/syntax/parse_json.h"
#include "trainer/config/tree/schema.h"
#include "trainer/hugging_face/model_section.h"
#include "trainer/io/file.h"
#include "trainer/registry/hugging_face.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

using Tensors = std::map<std::string, at::Tensor>;

struct Input {
  Tensors weights;
  Tensors batch;
};

Input read_input(const std::string& path) {
  constexpr std::string_view kBatch = "batch.";
  Input input;
  for (const auto& [name, tensor] : read_safetensors(path)) {
    if (name.starts_with(kBatch)) {
      input.batch[name.substr(kBatch.size())] = tensor;
    } else {
      input.weights[name] = tensor;
    }
  }
  return input;
}

/// A model and the names of its weights there.
class Probe {
 public:
  explicit Probe(const config::Node& section)
      : names_(hugging_face_model_of(hugging_face_model(section.find("name")->text), section)),
        model_(make(section)) {}

  void fill(const Tensors& weights) {
    modules::convert_to(model_->module(), weights.begin()->second.scalar_type());
    const at::NoGradGuard no_grad;
    for (const auto& parameter : named_parameters(*model_)) {
      parameter.tensor.copy_(weights.at(theirs(parameter)));
    }
  }

  HiddenStates hidden(const Tensors& batch) {
    if (auto* causal = model_->as<CausalLanguageModel>()) {
      const auto positions = batch.find("positions");
      return *causal->hidden_states(batch.at("tokens"),
                                    positions == batch.end() ? at::Tensor() : positions->second);
    }
    auto& model = *model_->as<SequenceToSequenceModel>();
    const at::Tensor mask = batch.at("mask").to(at::kBool);
    return model.decode(batch.at("outputs"), model.encode(batch.at("inputs"), mask), mask);
  }

  void take_steps(const Tensors& batch, double lr) {
    const auto& adamw = Registry<Optimizer>::instance().at("adamw");
    config::Node section = adamw.declaration()->defaults();
    section.set("lr", config::Node::real(lr));
    section.set("eps", config::Node::real(1e-5));
    const auto optimizer = adamw.make(section);
    optimizer->bind(default_parameter_groups(*model_));
    for (int step = 0; step < 3; ++step) {
      for (auto& parameter : named_parameters(*model_)) parameter.tensor.mutable_grad().reset();
      loss_of(hidden(batch), batch).backward();
      optimizer->step(optimizer->base_lr());
    }
  }

  static at::Tensor loss_of(const HiddenStates& hidden, const Tensors& batch) {
    const at::Tensor& targets = batch.at("targets");
    return token_loss(hidden, targets, targets.ne(-100).sum().item<int64_t>());
  }

  void add_gradients(std::vector<ShardedTensorView>& views) {
    for (const auto& parameter : named_parameters(*model_)) {
      views.push_back(
          whole_tensor("gradient." + theirs(parameter), parameter.tensor.grad().contiguous()));
    }
  }

  void add_weights(std::vector<ShardedTensorView>& views) {
    for (const auto& parameter : named_parameters(*model_)) {
      views.push_back(whole_tensor("weight." + theirs(parameter), parameter.tensor));
    }
  }

 private:
  static std::shared_ptr<ModelBase> make(const config::Node& section) {
    config::Node fields = section;
    std::erase_if(fields.entries, [](const auto& entry) { return entry.key == "name"; });
    return Registry<ModelBase>::instance().at(section.find("name")->text).make(fields);
  }

  std::string theirs(const NamedParameter& parameter) const {
    return hugging_face_name(names_, parameter.name);
  }

  HuggingFaceModel names_;
  std::shared_ptr<ModelBase> model_;
};

config::Node section_of(const std::string& path, const Tensors& weights) {
  const config::Node theirs = config::parse_json(read_text(path), path);
  const std::string name = model_of_type(theirs.find("model_type")->text);
  config::Node section = section_of_hugging_face(hugging_face_model(name), theirs, weights.size());
  section.set("name", config::Node::string(name));
  // transformers 5 writes that every T5 is tied; an import sees in the files whether it is.
  if (name == "t5") {
    const bool is_tied = !weights.contains("lm_head.weight");
    section.set("tie_word_embeddings", config::Node::boolean(is_tied));
  }
  return resolved_model(std::move(section));
}

void run(const std::vector<std::string>& arguments) {
  at::set_num_threads(1);
  const Input input = read_input(arguments.at(1));
  Probe probe(section_of(arguments.at(0), input.weights));
  probe.fill(input.weights);
  const HiddenStates hidden = probe.hidden(input.batch);
  const at::Tensor logits = tensors::linear(hidden.states, hidden.head);
  const at::Tensor loss = Probe::loss_of(hidden, input.batch);
  loss.backward();
  std::vector<ShardedTensorView> views{whole_tensor("logits", logits), whole_tensor("loss", loss)};
  probe.add_gradients(views);
  probe.take_steps(input.batch, std::stod(arguments.at(3)));
  probe.add_weights(views);
  write_safetensors(arguments.at(2), views);
}

}  // namespace
}  // namespace phalanx

int main(int argc, char** argv) try {
  phalanx::run({argv + 1, argv + argc});
} catch (const std::exception& error) {
  std::cerr << "model_probe: " << error.what() << "\n";
  return 1;
}
