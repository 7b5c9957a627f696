// SPDX-License-Identifier: Apache-2.0
// Runs Gpt2 for a Python test: `gpt2_probe INPUT OUTPUT HEADS` reads weights and `tokens`
// [batch, length] from a safetensors file, and writes logits, the mean loss of predicting each
// token from those before it, and the gradient of every weight. `gpt2_probe initial OUTPUT HEADS
// INPUT SEED` writes the weights that a trainer of that seed starts from, in the input's shapes.

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <exception>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "models/gpt2/config.h"
#include "tests/models/gpt2/registered_gpt2.h"
#include "tests/tensors.h"
#include "trainer/api/parameters.h"
#include "trainer/checkpoint/format/safetensors.h"
#include "trainer/tensors/random.h"

namespace phalanx {
namespace {

using Tensors = std::map<std::string, at::Tensor>;

gpt2::Config config_of(const Tensors& weights, int64_t heads) {
  gpt2::Config config;
  config.vocab_size = weights.at("wte.weight").size(0);
  config.n_positions = weights.at("wpe.weight").size(0);
  config.n_embd = weights.at("wte.weight").size(1);
  config.n_inner = weights.at("h.0.mlp.c_fc.weight").size(1);
  config.n_head = heads;
  config.n_layer = 0;
  while (weights.contains("h." + std::to_string(config.n_layer) + ".ln_1.weight")) {
    ++config.n_layer;
  }
  config.embd_pdrop = config.attn_pdrop = config.resid_pdrop = 0;
  return config;
}

void fill(RegisteredGpt2& model, const Tensors& weights) {
  if (weights.at("wte.weight").scalar_type() == at::kDouble) to_double(model);
  const at::NoGradGuard no_grad;
  for (auto& parameter : named_parameters(model)) {
    parameter.tensor.copy_(weights.at(parameter.name));
  }
}

std::vector<ShardedTensorView> results(RegisteredGpt2& model, const at::Tensor& tokens) {
  const int64_t predictions = tokens.size(1) - 1;
  const at::Tensor logits = model.logits(tokens);
  const at::Tensor predicted = logits.narrow(1, 0, predictions).flatten(0, 1);
  const at::Tensor targets = tokens.narrow(1, 1, predictions).flatten();
  const at::Tensor loss = tensors::cross_entropy(predicted, targets);
  loss.backward();
  std::vector<ShardedTensorView> views{whole_tensor("logits", logits), whole_tensor("loss", loss)};
  for (const auto& [name, tensor, shard, is_table] : named_parameters(model)) {
    views.push_back(whole_tensor("gradient." + name, tensor.grad().contiguous()));
  }
  return views;
}

void run(const std::vector<std::string>& arguments) {
  at::set_num_threads(1);
  const bool initial = arguments.at(0) == "initial";
  const Tensors input = read_safetensors(arguments.at(initial ? 3 : 0));
  if (initial) seed_everything(std::stoull(arguments.at(4)));
  RegisteredGpt2 model(config_of(input, std::stoll(arguments.at(2))));
  if (initial) {
    write_safetensors(arguments.at(1), model_views(model));
    return;
  }
  fill(model, input);
  write_safetensors(arguments.at(1), results(model, input.at("tokens")));
}

}  // namespace
}  // namespace phalanx

int main(int argc, char** argv) try {
  phalanx::run({argv + 1, argv + argc});
} catch (const std::exception& error) {
  std::cerr << "gpt2_probe: " << error.what() << "\n";
  return 1;
}
