// SPDX-License-Identifier: Apache-2.0
#include "trainer/registry/hugging_face.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "models/t5/config.h"
#include "tests/models/t5/registered_t5.h"
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

const HuggingFaceModel& table() { return Registry<ModelBase>::instance().at("t5").hugging_face(); }

std::string imported(const std::string& text) {
  return config::to_json(
      section_of_hugging_face(table(), config::parse_json(text, "config.json"), 1000));
}

// Fields that all differ from their defaults.
t5::Config odd() {
  t5::Config config = tiny_t5_v1_1();
  config.num_layers = 3;
  config.num_decoder_layers = 1;
  config.num_heads = 2;
  config.dropout_rate = 0.25;
  config.layer_norm_epsilon = 1e-5;
  config.initializer_factor = 0.5;
  config.pad_token_id = 2;
  config.eos_token_id = 3;
  config.decoder_start_token_id = 4;
  return config;
}

TEST(T5InHuggingFace, EveryFieldGoesThereAndBack) {
  for (const t5::Config& config : {t5::Config(), odd()}) {
    const config::Node section = config::write(config);
    const config::Node there = hugging_face_config(table(), section);
    const config::Node back = section_of_hugging_face(table(), there, 1000);
    EXPECT_TRUE(config::same_value(back, section)) << config::to_json(back) << "\n"
                                                   << config::to_json(section);
  }
}

TEST(T5InHuggingFace, EveryTensorGoesThereAndBack) {
  for (const t5::Config& config : {tiny_t5(), odd()}) {
    RegisteredT5 model(config);
    const HuggingFaceModel names = hugging_face_model_of(table(), config::write(config));
    for (const auto& view : model_views(model)) {
      EXPECT_EQ(hugging_face_name(names, view.name), view.name);
      const auto ours = our_tensor(names, view.name);
      ASSERT_TRUE(ours.has_value()) << view.name;
      EXPECT_EQ(ours->name, view.name);
      EXPECT_FALSE(ours->is_tied) << view.name;
    }
  }
}

TEST(T5InHuggingFace, TheEmbeddingHasFurtherNames) {
  for (const bool tied : {true, false}) {
    t5::Config config;
    config.tie_word_embeddings = tied;
    const HuggingFaceModel names = hugging_face_model_of(table(), config::write(config));
    for (const std::string name : {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"}) {
      EXPECT_TRUE(our_tensor(names, name)->is_tied) << name;
      EXPECT_EQ(our_tensor(names, name)->name, "shared.weight");
    }
    EXPECT_EQ(our_tensor(names, "lm_head.weight")->is_tied, tied);
  }
  EXPECT_FALSE(our_tensor(
      table(), "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"));
}

// Before transformers 5 the key of the tied head was that of its scale, too.
TEST(T5InHuggingFace, OldConfigsScaleATiedHeadOnly) {
  EXPECT_EQ(imported(R"({"tie_word_embeddings": false})"),
            R"({"tie_word_embeddings": false, "scale_decoder_outputs": false})");
  EXPECT_EQ(imported(R"({"tie_word_embeddings": true, "scale_decoder_outputs": false})"),
            R"({"tie_word_embeddings": true, "scale_decoder_outputs": false})");
  EXPECT_EQ(imported("{}"), "{}");
}

TEST(T5InHuggingFace, WhatComputesOtherwiseIsRefused) {
  EXPECT_THAT([] { imported(R"({"is_encoder_decoder": false})"); },
              ThrowsMessage<UserError>(HasSubstr("is_encoder_decoder")));
  EXPECT_THAT([] { imported(R"({"num_decoder_layers": 1000000000})"); },
              ThrowsMessage<UserError>(HasSubstr("num_decoder_layers")));
}

}  // namespace
}  // namespace phalanx
