// SPDX-License-Identifier: Apache-2.0
#include "trainer/registry/hugging_face.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "models/gpt2/config.h"
#include "tests/models/gpt2/registered_gpt2.h"
#include "trainer/api/parameters.h"
#include "trainer/base/user_error.h"
#include "trainer/config/syntax/parse_json.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/tree/schema.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const HuggingFaceModel& table() {
  return Registry<ModelBase>::instance().at("gpt2").hugging_face();
}

config::Node imported(const std::string& text) {
  return section_of_hugging_face(table(), config::parse_json(text, "config.json"), 1000);
}

// Fields that all differ from their defaults.
gpt2::Config tiny() {
  gpt2::Config config;
  config.vocab_size = 11;
  config.n_positions = 6;
  config.n_embd = 8;
  config.n_layer = 2;
  config.n_head = 2;
  config.n_inner = 12;
  config.embd_pdrop = 0;
  config.attn_pdrop = 0.25;
  config.resid_pdrop = 0.5;
  config.layer_norm_epsilon = 1e-6;
  config.initializer_range = 0.03;
  return config;
}

TEST(Gpt2InHuggingFace, EveryFieldGoesThereAndBack) {
  for (const gpt2::Config& config : {gpt2::Config(), tiny()}) {
    const config::Node section = config::write(config);
    const config::Node there = hugging_face_config(table(), section);
    const config::Node back = section_of_hugging_face(table(), there, 1000);
    EXPECT_TRUE(config::same_value(back, section)) << config::to_json(back) << "\n"
                                                   << config::to_json(section);
  }
}

TEST(Gpt2InHuggingFace, EveryTensorGoesThereAndBack) {
  RegisteredGpt2 model(tiny());
  for (const auto& view : model_views(model)) {
    const std::string theirs = hugging_face_name(table(), view.name);
    EXPECT_EQ(theirs, "transformer." + view.name);
    for (const std::string& name : {theirs, view.name}) {  // with the head, and without
      const auto ours = our_tensor(table(), name);
      ASSERT_TRUE(ours.has_value()) << name;
      EXPECT_EQ(ours->name, view.name);
      EXPECT_FALSE(ours->is_tied);
    }
  }
}

TEST(Gpt2InHuggingFace, MasksAreIgnoredAndTheHeadIsTheEmbedding) {
  for (const std::string name : {"h.0.attn.bias", "transformer.h.11.attn.masked_bias"}) {
    EXPECT_FALSE(our_tensor(table(), name).has_value()) << name;
  }
  EXPECT_TRUE(our_tensor(table(), "transformer.h.0.attn.c_attn.bias").has_value());
  EXPECT_TRUE(our_tensor(table(), "lm_head.weight")->is_tied);
  EXPECT_EQ(our_tensor(table(), "lm_head.weight")->name, "wte.weight");
}

TEST(Gpt2InHuggingFace, WhatComputesOtherwiseIsRefused) {
  for (const std::string key :
       {R"("activation_function": "gelu")", R"("activation_function": "relu")",
        R"("scale_attn_weights": false)", R"("scale_attn_by_inverse_layer_idx": true)",
        R"("add_cross_attention": true)", R"("tie_word_embeddings": false)"}) {
    EXPECT_THAT([&] { imported("{" + key + "}"); },
                ThrowsMessage<UserError>(HasSubstr(key.substr(1, key.find(':') - 2))))
        << key;
  }
}

TEST(Gpt2InHuggingFace, WhatComputesTheSameIsTaken) {
  EXPECT_EQ(config::to_json(imported(R"({"activation_function": "gelu_pytorch_tanh",
      "reorder_and_upcast_attn": true, "bos_token_id": 50256, "n_ctx": 1024,
      "num_hidden_layers": 3, "hidden_size": 12, "summary_type": "cls_index"})")),
            R"({"n_embd": 12, "n_layer": 3})");
}

}  // namespace
}  // namespace phalanx
