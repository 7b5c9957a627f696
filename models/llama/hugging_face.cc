// SPDX-License-Identifier: Apache-2.0
#include "models/llama/hugging_face.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/tree/node.h"

namespace phalanx::llama {
namespace {

using config::Node;

constexpr const char* kRope = "rope_parameters";  // transformers 5; before, what follows
constexpr const char* kOldRope = "rope_scaling";
constexpr const char* kBase = "rope_theta";
const std::vector<std::string> kScalingFields = {"factor", "low_freq_factor", "high_freq_factor",
                                                 "original_max_position_embeddings"};

bool is_true(const Node* value) { return value != nullptr && value->text == "true"; }

// The text of a value; "" of one that is missing or null.
std::string text_of(const Node* value) {
  return value != nullptr && value->is_scalar() ? value->text : std::string();
}

void write_rope(const Node& section, Node& config) {
  Node rope = Node::map();
  rope.set(kBase, *section.find(kBase));
  const Node& scaling = *section.find("rope_scaling");
  rope.set("rope_type", Node::string(scaling.is_null() ? "default" : "llama3"));
  if (!scaling.is_null()) {
    for (const std::string& field : kScalingFields) rope.set(field, *scaling.find(field));
    Node old = rope;
    config.set(kOldRope, std::move(old));
  }
  config.set(kBase, *section.find(kBase));
  config.set(kRope, std::move(rope));
}

void complete_config(const Node& section, Node& config) {
  write_rope(section, config);
  // Of defaults that their classes write out, or differ in.
  if (config.find("num_key_value_heads")->is_null()) {
    config.set("num_key_value_heads", *section.find("num_attention_heads"));
  }
  std::erase_if(config.entries,
                [](const auto& entry) { return entry.key == "head_dim" && entry.value.is_null(); });
  if (!is_true(section.find("attention_qkv_bias"))) return;
  config.set("architectures", Node::list({Node::string("Qwen2ForCausalLM")}));
  config.set("model_type", Node::string("qwen2"));
}

// Into the section; what is wrong, or "".
std::string read_rope(const Node& config, Node& section) {
  const Node* rope = config.find(kRope);
  const char* const key = rope != nullptr && rope->is_map() ? kRope : kOldRope;
  rope = config.find(key);
  if (const Node* base = config.find(kBase)) section.set(kBase, *base);
  if (rope == nullptr || !rope->is_map()) return {};
  if (const Node* base = rope->find(kBase)) section.set(kBase, *base);
  const Node* type = rope->find("rope_type");
  const std::string name = text_of(type != nullptr ? type : rope->find("type"));
  const std::string part = text_of(rope->find("partial_rotary_factor"));
  if (!part.empty() && part != "1" && part != "1.0") {
    return std::string(key) + ".partial_rotary_factor is " + part + ", and here it is 1";
  }
  if (name.empty() || name == "default") return {};
  if (name != "llama3") {
    return std::string(key) + ".rope_type is \"" + name +
           "\", and here it is \"default\" or \"llama3\"";
  }
  Node scaling = Node::map();
  for (const std::string& field : kScalingFields) {
    const Node* value = rope->find(field);
    if (value == nullptr) return std::string(key) + " has no " + field;
    scaling.set(field, *value);
  }
  section.set("rope_scaling", std::move(scaling));
  return {};
}

// Its biases, the defaults in which Qwen2Config differs from LlamaConfig, and the attention over a
// window that it may have.
std::vector<std::string> complete_qwen2(const Node& config, Node& section) {
  section.set("attention_qkv_bias", Node::boolean(true));
  const std::pair<const char*, int64_t> defaults[] = {
      {"vocab_size", 151936}, {"intermediate_size", 22016}, {"max_position_embeddings", 32768}};
  for (const auto& [field, value] : defaults) {
    if (section.find(field) == nullptr) section.set(field, Node::integer(value));
  }
  std::vector<std::string> problems;
  if (is_true(config.find("use_sliding_window"))) {
    problems.emplace_back("use_sliding_window is true, and here it is false");
  }
  const Node* layers = config.find("layer_types");
  if (layers != nullptr && std::ranges::any_of(layers->items, [](const Node& layer) {
        return layer.text != "full_attention";
      })) {
    problems.emplace_back("layer_types has other layers than full_attention");
  }
  return problems;
}

std::vector<std::string> complete_section(const Node& config, Node& section) {
  std::vector<std::string> problems;
  if (text_of(config.find("model_type")) == "qwen2") problems = complete_qwen2(config, section);
  const std::string rope = read_rope(config, section);
  if (!rope.empty()) problems.push_back(rope);
  return problems;
}

}  // namespace

const HuggingFaceModel& hugging_face_names() {
  static const HuggingFaceModel model{
      .model_type = "llama",
      .architecture = "LlamaForCausalLM",
      .fields = {{"vocab_size", "vocab_size"},
                 {"hidden_size", "hidden_size"},
                 {"intermediate_size", "intermediate_size"},
                 {.ours = "num_hidden_layers",
                  .theirs = "num_hidden_layers",
                  .counts_layers = true},
                 {"num_attention_heads", "num_attention_heads"},
                 {"num_key_value_heads", "num_key_value_heads"},
                 {"head_dim", "head_dim"},
                 {"max_position_embeddings", "max_position_embeddings"},
                 {"rms_norm_eps", "rms_norm_eps"},
                 {"tie_word_embeddings", "tie_word_embeddings"},
                 {"attention_bias", "attention_bias"},
                 {"mlp_bias", "mlp_bias"},
                 {"attention_dropout", "attention_dropout"},
                 {"initializer_range", "initializer_range"}},
      .constants = {{"hidden_act", R"("silu")", {R"("swish")"}},
                    // It splits products into parts, and only rounds otherwise.
                    {.key = "pretraining_tp", .value = "1", .import_takes_any = true},
                    // As in GPT-2's table: no token of a run begins or ends its texts.
                    {.key = "bos_token_id", .value = "null", .import_takes_any = true},
                    {.key = "eos_token_id", .value = "null", .import_takes_any = true}},
      .names = {{"lm_head.weight", "lm_head.weight"}, {"*", "model.*"}},
      .base_prefix = "model.",
      .tied = {{"embed_tokens.weight", "lm_head.weight", /*only_if=*/"tie_word_embeddings"}},
      // The rotations' frequencies, which older versions saved.
      .ignored = {"model.layers.*.self_attn.rotary_emb.inv_freq", "model.rotary_emb.inv_freq"},
      .free_in_training = {"attention_dropout", "initializer_range"},
      .complete_config = complete_config,
      .complete_section = complete_section,
      .other_model_types = {"qwen2"},
  };
  return model;
}

}  // namespace phalanx::llama
