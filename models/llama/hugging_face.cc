// SPDX-License-Identifier: Apache-2.0
#include "models/llama/hugging_face.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/tree/node.h"
#include "trainer/config/tree/scalar.h"

namespace phalanx::llama {
namespace {

using config::Node;

constexpr const char* kRope = "rope_parameters";  // Since transformers 5.
constexpr const char* kOldRope = "rope_scaling";  // Before, with rope_theta beside it.
constexpr const char* kBase = "rope_theta";
constexpr const char* kOurScaling = "rope_scaling";  // Its name in the section.
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
  const Node& scaling = *section.find(kOurScaling);
  rope.set("rope_type", Node::string(scaling.is_null() ? "default" : "llama3"));
  if (!scaling.is_null()) {
    for (const std::string& field : kScalingFields) rope.set(field, *scaling.find(field));
    config.set(kOldRope, rope);
  }
  config.set(kBase, *section.find(kBase));
  config.set(kRope, std::move(rope));
}

void complete_config(const Node& section, Node& config) {
  write_rope(section, config);
  // Keys that Hugging Face's classes always write, or for which null is not allowed.
  if (config.find("num_key_value_heads")->is_null()) {
    config.set("num_key_value_heads", *section.find("num_attention_heads"));
  }
  std::erase_if(config.entries,
                [](const auto& entry) { return entry.key == "head_dim" && entry.value.is_null(); });
  if (!is_true(section.find("attention_qkv_bias"))) return;
  config.set("architectures", Node::list({Node::string("Qwen2ForCausalLM")}));
  config.set("model_type", Node::string("qwen2"));
}

// Whether there is RoPE under `key`; to transformers an empty map is none.
bool has_rope(const Node& config, const char* key) {
  const Node* rope = config.find(key);
  return rope != nullptr && rope->is_map() && !rope->entries.empty();
}

// Reads RoPE as it is under `key` into the section. Returns what is unsupported, or "".
std::string read_rope(const Node& config, const char* key, Node& section) {
  if (const Node* base = config.find(kBase)) section.set(kBase, *base);
  if (!has_rope(config, key)) return {};
  const Node* rope = config.find(key);
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
    // transformers takes one beside RoPE's keys for that within.
    const Node* outside = config.find(field);
    if (outside != nullptr && !config::same_value(*outside, *value)) {
      return field + " is " + outside->text + ", but " + key + " has " + value->text + ": keep one";
    }
    scaling.set(field, *value);
  }
  section.set(kOurScaling, std::move(scaling));
  return {};
}

// Reads RoPE's keys into the section. Returns what is unsupported, or "". Where both keys are there
// transformers takes rope_scaling; here they must agree.
std::string read_rope(const Node& config, Node& section) {
  const bool has_new = has_rope(config, kRope);
  Node rope = Node::map();
  std::string problem = read_rope(config, has_new ? kRope : kOldRope, rope);
  if (problem.empty() && has_new && has_rope(config, kOldRope)) {
    Node old = Node::map();
    problem = read_rope(config, kOldRope, old);
    if (problem.empty() && !config::same_value(rope, old)) {
      problem = "rope_parameters and rope_scaling differ: keep one";
    }
  }
  for (auto& [key, origin, value] : rope.entries) section.set(key, std::move(value));
  return problem;
}

// `otherwise` if the value is missing; 0 if it is no integer.
int64_t integer_of(const Node* value, int64_t otherwise) {
  if (value == nullptr) return otherwise;
  return config::parse_integer(value->text).value.value_or(0);
}

// Whether a layer attends to a window only (transformers' Qwen2Config).
bool has_windows(const Node& config) {
  if (const Node* layers = config.find("layer_types"); layers != nullptr && !layers->is_null()) {
    return std::ranges::any_of(layers->items,
                               [](const Node& layer) { return layer.text != "full_attention"; });
  }
  const Node* window = config.find("sliding_window");
  if (!is_true(config.find("use_sliding_window")) || (window != nullptr && window->is_null())) {
    return false;
  }
  return integer_of(config.find("max_window_layers"), 28) <
         integer_of(config.find("num_hidden_layers"), 32);
}

// Sets what a Qwen2 has and a Llama lacks: biases of queries, keys and values, and the defaults in
// which Qwen2Config differs. Returns what is unsupported: attention over a window.
std::vector<std::string> complete_qwen2(const Node& config, Node& section) {
  section.set("attention_qkv_bias", Node::boolean(true));
  const std::pair<const char*, int64_t> defaults[] = {{"vocab_size", 151936},
                                                      {"intermediate_size", 22016},
                                                      {"max_position_embeddings", 32768},
                                                      {"num_key_value_heads", 32}};
  for (const auto& [field, value] : defaults) {
    if (section.find(field) == nullptr) section.set(field, Node::integer(value));
  }
  std::vector<std::string> problems;
  if (has_windows(config)) {
    problems.emplace_back(
        "use_sliding_window or layer_types asks for attention over a window, and here all layers "
        "attend to the whole sequence");
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

const HuggingFaceModel& hugging_face_table() {
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
                    // As in GPT-2's table.
                    {.key = "bos_token_id", .value = "null", .import_takes_any = true},
                    {.key = "eos_token_id", .value = "null", .import_takes_any = true}},
      .names = {{"lm_head.weight", "lm_head.weight"}, {"*", "model.*"}},
      .base_prefix = "model.",
      .tied = {{"embed_tokens.weight", "lm_head.weight", /*only_if=*/"tie_word_embeddings"}},
      // The rotations' frequencies, which older versions saved.
      .ignored = {"model.layers.*.self_attn.rotary_emb.inv_freq", "model.rotary_emb.inv_freq"},
      // No tensor has the size of the context: positions are rotations.
      .free_in_training = {"attention_dropout", "initializer_range", "max_position_embeddings"},
      .complete_config = complete_config,
      .complete_section = complete_section,
      .other_model_types = {"qwen2"},
  };
  return model;
}

}  // namespace phalanx::llama
