// SPDX-License-Identifier: Apache-2.0
#include "trainer/registry/hugging_face.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "models/llama/config.h"
#include "tests/models/causal_model.h"
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
  return Registry<ModelBase>::instance().at("llama").hugging_face();
}

config::Node imported(const std::string& text) {
  return section_of_hugging_face(table(), config::parse_json(text, "config.json"), 1000);
}

llama::Config tiny() {
  llama::Config config;
  config.vocab_size = 61;
  config.hidden_size = 24;
  config.intermediate_size = 40;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  return config;
}

// Fields that all differ from their defaults.
llama::Config odd() {
  llama::Config config = tiny();
  config.head_dim = 8;
  config.max_position_embeddings = 99;
  config.rms_norm_eps = 1e-5;
  config.rope_theta = 500000;
  config.rope_scaling = RotaryScaling{.factor = 32,
                                      .low_freq_factor = 2,
                                      .high_freq_factor = 5,
                                      .original_max_position_embeddings = 7};
  config.tie_word_embeddings = true;
  config.attention_bias = true;
  config.mlp_bias = true;
  config.attention_dropout = 0.25;
  config.initializer_range = 0.01;
  return config;
}

TEST(LlamaInHuggingFace, EveryFieldGoesThereAndBack) {
  llama::Config qwen2 = tiny();
  qwen2.attention_qkv_bias = true;
  for (const llama::Config& config : {tiny(), odd(), qwen2}) {
    const config::Node section = config::write(config);
    config::Node back = config::write(llama::Config());
    const config::Node there = hugging_face_config(table(), section);
    for (const auto& [key, origin, value] : section_of_hugging_face(table(), there, 1000).entries) {
      back.set(key, value);
    }
    EXPECT_TRUE(config::same_value(back, section)) << config::to_json(back) << "\n"
                                                   << config::to_json(section);
  }
}

TEST(LlamaInHuggingFace, BiasesOfQueriesKeysAndValuesAreQwen2s) {
  llama::Config config = tiny();
  EXPECT_EQ(hugging_face_config(table(), config::write(config)).find("model_type")->text, "llama");
  config.attention_qkv_bias = true;
  EXPECT_EQ(hugging_face_config(table(), config::write(config)).find("model_type")->text, "qwen2");
  EXPECT_EQ(imported(R"({"model_type": "qwen2"})").find("attention_qkv_bias")->text, "true");
  EXPECT_EQ(imported(R"({"model_type": "qwen2"})").find("vocab_size")->text, "151936");
  EXPECT_EQ(imported(R"({"model_type": "qwen2"})").find("num_key_value_heads")->text, "32");
}

TEST(LlamaInHuggingFace, AWindowThatNoLayerHasIsTaken) {
  for (const char* const rest :
       {R"("sliding_window": null)", R"("max_window_layers": 24, "num_hidden_layers": 24)",
        R"("layer_types": ["full_attention"])"}) {
    const std::string text =
        std::string(R"({"model_type": "qwen2", "use_sliding_window": true, )") + rest + "}";
    EXPECT_EQ(imported(text).find("attention_qkv_bias")->text, "true") << text;
  }
}

TEST(LlamaInHuggingFace, ThePositionsOfOlderVersionsAreTaken) {
  const config::Node section =
      imported(R"({"rope_theta": 500000.0, "rope_scaling": {"type": "llama3",
      "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
      "original_max_position_embeddings": 8192}})");
  EXPECT_EQ(section.find("rope_theta")->text, "5.0e+05");
  EXPECT_EQ(section.find_path("rope_scaling.original_max_position_embeddings")->text, "8192");
  EXPECT_EQ(imported(R"({"rope_scaling": null})").find("rope_scaling"), nullptr);
}

TEST(LlamaInHuggingFace, WhatOursCannotHoldIsRefusedByItsKey) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"rope_parameters": {"rope_type": "yarn"}})", "rope_parameters.rope_type"},
      {R"({"rope_scaling": {"type": "linear", "factor": 2}})", "rope_scaling.rope_type"},
      {R"({"rope_parameters": {"rope_type": "llama3", "factor": 2}})", "has no low_freq_factor"},
      {R"({"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}})",
       "partial_rotary_factor"},
      {R"({"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
           "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
           "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}})",
       "rope_parameters and rope_scaling differ"},
      {R"({"rope_parameters": {"rope_type": "default", "rope_theta": 500000.0},
           "rope_scaling": {"rope_type": "default"}})",
       "rope_parameters and rope_scaling differ"},
      {R"({"original_max_position_embeddings": 64, "rope_scaling": {"rope_type": "llama3",
          "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8192}})",
       "original_max_position_embeddings is 64, but rope_scaling has 8192"},
      {R"({"hidden_act": "gelu"})", "hidden_act"},
      {R"({"model_type": "qwen2", "use_sliding_window": true})", "use_sliding_window"},
      {R"({"model_type": "qwen2", "use_sliding_window": true, "num_hidden_layers": 24,
           "max_window_layers": 23})",
       "use_sliding_window"},
      {R"({"model_type": "qwen2", "use_sliding_window": true, "num_hidden_layers": 24,
           "max_window_layers": "all"})",
       "use_sliding_window"},
      {R"({"model_type": "qwen2", "layer_types": ["sliding_attention"]})", "layer_types"},
      {R"({"num_hidden_layers": 1001})", "num_hidden_layers"},
  };
  for (const auto& [text, key] : cases) {
    EXPECT_THAT([&] { imported(text); }, ThrowsMessage<UserError>(HasSubstr(key))) << text;
  }
}

TEST(LlamaInHuggingFace, EveryTensorGoesThereAndBack) {
  for (const llama::Config& config : {tiny(), odd()}) {
    const config::Node section = config::write(config);
    CausalModel model("llama", section);
    const HuggingFaceModel names = hugging_face_model_of(table(), section);
    for (const auto& view : model_views(model)) {
      const std::string theirs = hugging_face_name(names, view.name);
      EXPECT_EQ(our_tensor(names, theirs)->name, view.name);
      EXPECT_FALSE(our_tensor(names, theirs)->is_tied);
    }
    const auto head = our_tensor(names, "lm_head.weight");
    EXPECT_EQ(head->is_tied, config.tie_word_embeddings);
    EXPECT_EQ(head->name, config.tie_word_embeddings ? "embed_tokens.weight" : "lm_head.weight");
  }
}

}  // namespace
}  // namespace phalanx
