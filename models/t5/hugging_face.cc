// SPDX-License-Identifier: Apache-2.0
#include "models/t5/hugging_face.h"

namespace phalanx::t5 {

const HuggingFaceModel& hugging_face_table() {
  static const HuggingFaceModel model{
      .model_type = "t5",
      .architecture = "T5ForConditionalGeneration",
      .fields = {{"vocab_size", "vocab_size"},
                 {"d_model", "d_model", "hidden_size"},
                 {"d_kv", "d_kv", "head_dim"},
                 {"d_ff", "d_ff"},
                 {"num_layers", "num_layers", "num_hidden_layers", /*counts_layers=*/true},
                 {.ours = "num_decoder_layers",
                  .theirs = "num_decoder_layers",
                  .counts_layers = true},
                 {"num_heads", "num_heads", "num_attention_heads"},
                 {"relative_attention_num_buckets", "relative_attention_num_buckets"},
                 {"relative_attention_max_distance", "relative_attention_max_distance"},
                 {"dropout_rate", "dropout_rate"},
                 {"layer_norm_epsilon", "layer_norm_epsilon"},
                 {"initializer_factor", "initializer_factor"},
                 {"feed_forward_proj", "feed_forward_proj"},
                 {"tie_word_embeddings", "tie_word_embeddings"},
                 // Before transformers 5 a tied head was a scaled one.
                 {"scale_decoder_outputs", "scale_decoder_outputs", "tie_word_embeddings"},
                 {"pad_token_id", "pad_token_id"},
                 {"eos_token_id", "eos_token_id"},
                 {"decoder_start_token_id", "decoder_start_token_id"}},
      .constants = {{"is_encoder_decoder", "true"}, {"is_decoder", "false"}},
      .names = {{"*", "*"}},
      .tied = {{"shared.weight", "encoder.embed_tokens.weight"},
               {"shared.weight", "decoder.embed_tokens.weight"},
               {"shared.weight", "lm_head.weight", /*only_if=*/"tie_word_embeddings"}},
      // Older versions saved it, and never used it.
      .ignored = {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"},
      // A run may end its texts with another token: that changes nothing that the model computes.
      .free_in_training = {"dropout_rate", "initializer_factor", "eos_token_id"},
  };
  return model;
}

}  // namespace phalanx::t5
