// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/tokenizers/small_character_bpe.h"

#include <fmt/format.h>

namespace phalanx {

nlohmann::json small_character_json() {
  using nlohmann::json;
  json vocabulary;
  json added = json::array();
  for (const char* text : {"<unk>", "<s>", "</s>"}) {
    added.push_back({{"id", added.size()},
                     {"content", text},
                     {"lstrip", false},
                     {"normalized", false},
                     {"special", true}});
    vocabulary[text] = vocabulary.size();
  }
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary[fmt::format("<0x{:02X}>", byte)] = vocabulary.size();
  }
  for (const char* text : {"\u2581", "a", "b", "c", "d", "e", "\u2581a", "bc", "\u2581abc"}) {
    vocabulary[text] = vocabulary.size();
  }
  const auto replace = [](const char* from, const char* to) {
    return json{{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
  };
  return {
      {"version", "1.0"},
      {"added_tokens", added},
      {"normalizer",
       {{"type", "Sequence"},
        {"normalizers", {{{"type", "Prepend"}, {"prepend", "\u2581"}}, replace(" ", "\u2581")}}}},
      {"pre_tokenizer", nullptr},
      {"post_processor", nullptr},
      {"decoder",
       {{"type", "Sequence"},
        {"decoders",
         {replace("\u2581", " "),
          {{"type", "ByteFallback"}},
          {{"type", "Fuse"}},
          {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}}},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", "<unk>"},
        {"fuse_unk", true},
        {"byte_fallback", true},
        {"ignore_merges", false},
        {"vocab", vocabulary},
        {"merges", {"\u2581 a", "b c", "\u2581a bc"}}}},
  };
}

}  // namespace phalanx
