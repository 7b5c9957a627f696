// SPDX-License-Identifier: Apache-2.0
#include "trainer/registry/hugging_face.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "trainer/base/user_error.h"
#include "trainer/config/syntax/parse_json.h"
#include "trainer/config/syntax/print.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

// A model whose names differ from theirs, some in more than what they begin with.
const HuggingFaceModel kModel{
    .model_type = "other",
    .architecture = "OtherForCausalLM",
    .fields = {{"width", "hidden_size", "d_model"}, {"layers", "num_layers", "", true}},
    .constants = {{"act", R"("silu")", {R"("swish")"}},
                  {"bias", "false"},
                  {.key = "start", .value = "null", .import_takes_any = true}},
    .names = {{"head.weight", "lm_head.weight"},
              {"layers.*.norm", "model.layers.*.input_layernorm.weight"},
              {"layers.*", "model.layers.*"},
              {"tokens", "model.embed_tokens.weight"}},
    .base_prefix = "model.",
    .tied = {{"tokens", "model.shared.weight"}},
    .ignored = {"model.layers.*.inv_freq", "model.step"},
};

config::Node json(const std::string& text) { return config::parse_json(text, "config.json"); }

config::Node section_of(const std::string& text, std::size_t tensors = 100) {
  return section_of_hugging_face(kModel, json(text), tensors);
}

TEST(HuggingFaceConfig, GoesThereAndBack) {
  const config::Node section = json(R"({"name":"other","width":8,"layers":3})");
  const config::Node there = hugging_face_config(kModel, section);
  EXPECT_EQ(config::to_json(there),
            R"({"architectures": ["OtherForCausalLM"], "model_type": "other", "hidden_size": 8, )"
            R"("num_layers": 3, "act": "silu", "bias": false, "start": null})");
  const config::Node back = section_of_hugging_face(kModel, there, 3);
  EXPECT_EQ(config::to_json(back), R"({"width": 8, "layers": 3})");
}

TEST(HuggingFaceConfig, AliasesSynonymsAndAbsentKeysAreUnderstood) {
  EXPECT_EQ(config::to_json(section_of(R"({"d_model": 8})")), R"({"width": 8})");
  EXPECT_EQ(config::to_json(section_of(R"({"hidden_size": 4, "d_model": 8})")), R"({"width": 4})");
  EXPECT_EQ(config::to_json(section_of(R"({"act": "swish", "start": 5, "unknown": [1]})")), "{}");
}

TEST(HuggingFaceConfig, EveryKeyThatCannotBeMetIsNamed) {
  EXPECT_THAT([] { section_of(R"({"act": "relu", "bias": true, "start": 1})"); },
              ThrowsMessage<UserError>(AllOf(
                  HasSubstr("'config.json'"), HasSubstr(R"(act is "relu", and here it is "silu")"),
                  HasSubstr("bias is true, and here it is false"), Not(HasSubstr("start")))));
  EXPECT_THAT([] { section_of(R"({"bias": "false"})"); },
              ThrowsMessage<UserError>(HasSubstr(R"(bias is "false")")));
}

TEST(HuggingFaceConfig, NoModelHasMoreLayersThanTensors) {
  EXPECT_EQ(config::to_json(section_of(R"({"num_layers": 5})", 5)), R"({"layers": 5})");
  EXPECT_THAT(
      [] { section_of(R"({"num_layers": 6})", 5); },
      ThrowsMessage<UserError>(HasSubstr("num_layers is 6, and the files beside it hold 5")));
}

TEST(HuggingFaceConfig, ATableThatNamesNoFieldIsAMistakeInTheProgram) {
  EXPECT_THROW(hugging_face_config(kModel, json(R"({"width":8})")), std::logic_error);
}

TEST(HuggingFaceNames, GoThereAndBack) {
  for (const auto& [ours, theirs] : std::vector<std::pair<std::string, std::string>>{
           {"head.weight", "lm_head.weight"},
           {"layers.0.norm", "model.layers.0.input_layernorm.weight"},
           {"layers.17.mlp.up.weight", "model.layers.17.mlp.up.weight"},
           {"tokens", "model.embed_tokens.weight"}}) {
    EXPECT_EQ(hugging_face_name(kModel, ours), theirs);
    const auto back = our_tensor(kModel, theirs);
    ASSERT_TRUE(back.has_value()) << theirs;
    EXPECT_EQ(back->name, ours);
    EXPECT_FALSE(back->is_tied);
  }
  EXPECT_THROW(hugging_face_name(kModel, "nonsense"), std::logic_error);
  EXPECT_THROW(hugging_face_name(kModel, "layers."), std::logic_error) << "* is not nothing";
}

TEST(HuggingFaceNames, OfAModelWithoutItsHeadLackThePrefix) {
  EXPECT_EQ(our_tensor(kModel, "layers.0.input_layernorm.weight")->name, "layers.0.norm");
  EXPECT_EQ(our_tensor(kModel, "embed_tokens.weight")->name, "tokens");
}

TEST(HuggingFaceNames, BuffersAreIgnoredAndSecondNamesTold) {
  EXPECT_FALSE(our_tensor(kModel, "model.layers.3.inv_freq").has_value());
  EXPECT_FALSE(our_tensor(kModel, "layers.3.inv_freq").has_value());
  EXPECT_FALSE(our_tensor(kModel, "model.step").has_value());
  EXPECT_TRUE(our_tensor(kModel, "shared.weight")->is_tied);
  EXPECT_EQ(our_tensor(kModel, "shared.weight")->name, "tokens");
  EXPECT_EQ(our_tensor(kModel, "classifier.weight")->name, "classifier.weight")
      << "which no model has, and the import says so";
}

TEST(HuggingFaceNames, ATensorMayBeTiedByAField) {
  HuggingFaceModel model = kModel;
  model.tied.push_back({"tokens", "lm_head.weight", /*only_if=*/"is_tied"});
  const auto head = [&](const std::string& section) {
    return our_tensor(hugging_face_model_of(model, json(section)), "lm_head.weight")->name;
  };
  EXPECT_EQ(head(R"({"is_tied": true})"), "tokens");
  EXPECT_EQ(head(R"({"is_tied": false})"), "head.weight");
  EXPECT_EQ(head("{}"), "tokens");
}

}  // namespace
}  // namespace phalanx
