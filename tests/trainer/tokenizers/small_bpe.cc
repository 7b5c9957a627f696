// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/tokenizers/small_bpe.h"

#include "trainer/tokenizers/byte_alphabet.h"

namespace phalanx {

nlohmann::json small_tokenizer_json() {
  nlohmann::json vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    const auto character = static_cast<char>(byte);
    vocabulary[visible_bytes({&character, 1})] = byte;
  }
  int next = 256;
  for (const char* text : {"he", "ll", "hell", "hello", "\u0120w"}) vocabulary[text] = next++;
  return {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens",
       {{{"id", next},
         {"content", "<|endoftext|>"},
         {"single_word", false},
         {"lstrip", false},
         {"rstrip", false},
         {"normalized", false},
         {"special", true}}}},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
      {"post_processor", nullptr},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"ignore_merges", false},
        {"vocab", vocabulary},
        {"merges", {"h e", "l l", "he ll", "hell o", "\u0120 w"}}}},
  };
}

}  // namespace phalanx
