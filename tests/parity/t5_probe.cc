// SPDX-License-Identifier: Apache-2.0
// Runs T5 for a Python test: `t5_probe CONFIG INPUT OUTPUT` makes the model that a config.json of
// Hugging Face's describes, reads weights and a batch (`inputs`, `mask`, `outputs`, `targets`) from
// a safetensors file, and writes logits, the mean loss, the gradient of every weight, and every
// weight after three steps of AdamW.

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <exception>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/interfaces/token_loss.h"
#include "tests/models/t5/registered_t5.h"
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

config::Node section_of(const std::string& path, const Tensors& input) {
  const config::Node theirs = config::parse_json(read_text(path), path);
  config::Node section = section_of_hugging_face(hugging_face_model("t5"), theirs, input.size());
  section.set("name", config::Node::string("t5"));
  section.set("tie_word_embeddings", config::Node::boolean(!input.contains("lm_head.weight")));
  config::Node resolved = resolved_model(std::move(section));
  std::erase_if(resolved.entries, [](const auto& entry) { return entry.key == "name"; });
  return resolved;
}

void fill(RegisteredT5& model, const Tensors& weights) {
  modules::convert_to(model.module(), weights.at("shared.weight").scalar_type());
  const at::NoGradGuard no_grad;
  for (auto& parameter : named_parameters(model)) {
    parameter.tensor.copy_(weights.at(parameter.name));
  }
}

struct Pass {
  at::Tensor logits;
  at::Tensor loss;
};

Pass pass(RegisteredT5& model, const Tensors& batch) {
  const at::Tensor mask = batch.at("mask").to(at::kBool);
  const at::Tensor& targets = batch.at("targets");
  const HiddenStates hidden =
      model.decode(batch.at("outputs"), model.encode(batch.at("inputs"), mask), mask);
  return {.logits = tensors::linear(hidden.states, hidden.head),
          .loss = token_loss(hidden, targets, targets.ne(-100).sum().item<int64_t>())};
}

void zero_gradients(RegisteredT5& model) {
  for (auto& parameter : named_parameters(model)) parameter.tensor.mutable_grad().reset();
}

void take_steps(RegisteredT5& model, const Tensors& batch) {
  const auto& adamw = Registry<Optimizer>::instance().at("adamw");
  config::Node section = adamw.declaration()->defaults();
  section.set("lr", config::Node::real(1e-4));
  section.set("eps", config::Node::real(1e-5));
  const auto optimizer = adamw.make(section);
  optimizer->bind(default_parameter_groups(model));
  for (int step = 0; step < 3; ++step) {
    zero_gradients(model);
    pass(model, batch).loss.backward();
    optimizer->step(optimizer->base_lr());
  }
}

void run(const std::vector<std::string>& arguments) {
  at::set_num_threads(1);
  const Tensors input = read_safetensors(arguments.at(1));
  RegisteredT5 model(section_of(arguments.at(0), input));
  fill(model, input);
  const Pass first = pass(model, input);
  first.loss.backward();
  std::vector<ShardedTensorView> views{whole_tensor("logits", first.logits),
                                       whole_tensor("loss", first.loss)};
  for (const auto& [name, tensor, shard] : named_parameters(model)) {
    views.push_back(whole_tensor("gradient." + name, tensor.grad().contiguous()));
  }
  take_steps(model, input);
  for (const auto& [name, tensor, shard] : named_parameters(model)) {
    views.push_back(whole_tensor("weight." + name, tensor));
  }
  write_safetensors(arguments.at(2), views);
}

}  // namespace
}  // namespace phalanx

int main(int argc, char** argv) try {
  phalanx::run({argv + 1, argv + argc});
} catch (const std::exception& error) {
  std::cerr << "t5_probe: " << error.what() << "\n";
  return 1;
}
