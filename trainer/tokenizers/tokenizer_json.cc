// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/tokenizer_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/tokenizers/added_tokens.h"
#include "trainer/tokenizers/byte_level_json.h"
#include "trainer/tokenizers/character_bpe_json.h"
#include "trainer/tokenizers/composed_json.h"
#include "trainer/tokenizers/json_vocabulary.h"
#include "trainer/tokenizers/tokenizer_json_parts.h"
#include "trainer/tokenizers/unsupported_part.h"

namespace phalanx {
namespace {

using nlohmann::json;

void check_model(const json& model) {
  const std::string type = model.value("type", "BPE");
  if (type != "BPE") refuse_part("the model " + type);
  for (const char* option : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
    if (is_set(model, option)) refuse_part(fmt::format("the option {} of the model BPE", option));
  }
}

// The one that model families use, where no tokenizer_config.json names another.
std::optional<int32_t> usual_end_of_text(const AddedTokens& added) {
  for (const char* text : {"<|endoftext|>", "<|end_of_text|>", "</s>"}) {
    if (const auto token = added.token_of(text)) return token;
  }
  return std::nullopt;
}

// A model's vocabulary is {"the": 5}, or [["the", -1.5]], whose places are the tokens.
std::optional<int32_t> token_in_model(const json& model, const std::string& text) {
  const json& vocabulary = member(model, "vocab");
  if (vocabulary.is_object()) {
    const auto found = vocabulary.find(text);
    return found == vocabulary.end() ? std::nullopt : std::optional(token_number(*found));
  }
  int32_t token = 0;
  for (const json& entry : vocabulary) {
    if (entry.is_array() && !entry.empty() && entry.front() == text) return token;
    ++token;
  }
  return std::nullopt;
}

std::optional<int32_t> find_end_of_text(const std::optional<std::string>& text, const json& file) {
  std::vector<AddedToken> tokens;
  for (const json& entry : member(file, "added_tokens")) {
    auto content = entry.at("content").get<std::string>();
    if (content.empty()) continue;
    tokens.push_back({.token = token_number(entry.at("id")), .text = std::move(content)});
  }
  const AddedTokens added(std::move(tokens));
  if (!text) return usual_end_of_text(added);
  if (const auto token = added.token_of(*text)) return token;
  if (const auto token = token_in_model(member(file, "model"), *text)) return token;
  throw UserError(fmt::format(
      "the end-of-text token '{}' is neither among them nor in the model's vocabulary", *text));
}

// Whether the pre-tokenizer or the decoder says so.
bool is_byte_level(const json& file) {
  bool found = false;
  const auto look_at = [&](const char* name, const char* list) {
    in_part(name, [&] {
      for (const json& step : steps_of(member(file, name), list)) {
        found = found || type_of(step) == "ByteLevel";
      }
    });
  };
  look_at("pre_tokenizer", "pretokenizers");
  look_at("decoder", "decoders");
  return found;
}

// The forms of GPT-2, Llama 2 and 3 and their likes, which have tokenizers of their own.
std::shared_ptr<const Tokenizer> make_fast(const json& file, std::optional<int32_t> end_of_text) {
  std::vector<AddedToken> added;
  in_part("model", [&] { check_model(file.at("model")); });
  in_part("added_tokens", [&] { added = read_added(member(file, "added_tokens")); });
  return (is_byte_level(file) ? make_byte_level_bpe : make_character_bpe)(file, std::move(added),
                                                                          end_of_text);
}

std::shared_ptr<const Tokenizer> make(const json& file,
                                      const std::optional<std::string>& end_of_text) {
  std::optional<int32_t> end;
  in_part("added_tokens", [&] { end = find_end_of_text(end_of_text, file); });
  try {
    return make_fast(file, end);
  } catch (const UnsupportedPart&) {
    return make_composed(file, end);
  }
}

}  // namespace

std::shared_ptr<const Tokenizer> parse_tokenizer_json(
    std::string_view text, const std::optional<std::string>& end_of_text) {
  return make(parse_json_object(text), end_of_text);
}

std::optional<std::string> end_of_text_of_config(std::string_view text) {
  const json file = parse_json_object(text);
  const json& token = member(file, "eos_token");
  if (token.is_string()) return token.get<std::string>();
  if (token.is_object() && member(token, "content").is_string()) {
    return token.at("content").get<std::string>();
  }
  return std::nullopt;
}

}  // namespace phalanx
