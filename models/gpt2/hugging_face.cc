// SPDX-License-Identifier: Apache-2.0
#include "models/gpt2/hugging_face.h"

namespace phalanx::gpt2 {

const HuggingFaceModel& hugging_face_table() {
  static const HuggingFaceModel model{
      .model_type = "gpt2",
      .architecture = "GPT2LMHeadModel",
      .fields = {{"vocab_size", "vocab_size"},
                 {"n_positions", "n_positions", "max_position_embeddings"},
                 {"n_embd", "n_embd", "hidden_size"},
                 {"n_layer", "n_layer", "num_hidden_layers", /*counts_layers=*/true},
                 {"n_head", "n_head", "num_attention_heads"},
                 {"n_inner", "n_inner"},
                 {"embd_pdrop", "embd_pdrop"},
                 {"attn_pdrop", "attn_pdrop"},
                 {"resid_pdrop", "resid_pdrop"},
                 {"layer_norm_epsilon", "layer_norm_epsilon"},
                 {"initializer_range", "initializer_range"}},
      // All of them are the tanh approximation; reorder_and_upcast_attn only rounds otherwise.
      .constants = {{"activation_function",
                     R"("gelu_new")",
                     {R"("gelu_pytorch_tanh")", R"("gelu_fast")"}},
                    {"scale_attn_weights", "true"},
                    {"scale_attn_by_inverse_layer_idx", "false"},
                    {"reorder_and_upcast_attn", "false", {"true"}},
                    {"add_cross_attention", "false"},
                    {"tie_word_embeddings", "true"},
                    // An export names those that the run has learned, in generation_config.json
                    // too. Without these keys two of the published vocabulary's would be meant.
                    {.key = "bos_token_id", .value = "null", .import_takes_any = true},
                    {.key = "eos_token_id", .value = "null", .import_takes_any = true}},
      .names = {{"*", "transformer.*"}},
      .base_prefix = "transformer.",
      .tied = {{"wte.weight", "lm_head.weight"}},
      // The causal mask, which older versions saved.
      .ignored = {"transformer.h.*.attn.bias", "transformer.h.*.attn.masked_bias"},
      .free_in_training = {"embd_pdrop", "attn_pdrop", "resid_pdrop", "initializer_range"},
  };
  return model;
}

}  // namespace phalanx::gpt2
