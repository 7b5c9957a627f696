// SPDX-License-Identifier: Apache-2.0
#include "tests/models/t5/registered_t5.h"

#include "tests/tensors.h"
#include "trainer/config/tree/schema.h"
#include "trainer/registry/kinds.h"

namespace phalanx {

RegisteredT5::RegisteredT5(const t5::Config& config) : RegisteredT5(config::write(config)) {}

RegisteredT5::RegisteredT5(const config::Node& section)
    : model_(Registry<ModelBase>::instance().at("t5").make(section)),
      interface_(dynamic_cast<SequenceToSequenceModel&>(*model_)) {}

at::Tensor RegisteredT5::logits(const at::Tensor& inputs, const at::Tensor& mask,
                                const at::Tensor& outputs) {
  const HiddenStates hidden = decode(outputs, encode(inputs, mask), mask);
  return tensors::linear(hidden.states, hidden.head);
}

t5::Config tiny_t5() {
  t5::Config config;
  config.vocab_size = 61;
  config.d_model = 24;
  config.d_kv = 8;
  config.d_ff = 40;
  config.num_layers = 2;
  config.num_heads = 4;
  config.relative_attention_num_buckets = 8;
  config.relative_attention_max_distance = 9;
  return config;
}

t5::Config tiny_t5_v1_1() {
  t5::Config config = tiny_t5();
  config.feed_forward_proj = t5::FeedForwardKind::gated_gelu;
  config.tie_word_embeddings = config.scale_decoder_outputs = false;
  return config;
}

}  // namespace phalanx
