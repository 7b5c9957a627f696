// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/tokenizer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/tokenizers/byte_level_bpe.h"
#include "trainer/tokenizers/json_vocabulary.h"
#include "trainer/tokenizers/visible_bpe.h"

namespace phalanx {
namespace {

using nlohmann::json;

const json kNothing = nullptr;

const json& member(const json& object, const std::string& name) {
  const auto found = object.find(name);
  return found == object.end() ? kNothing : *found;
}

bool is_set(const json& object, const std::string& name) {
  const json& value = member(object, name);
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>() != 0;
  return value.is_string() ? !value.get_ref<const std::string&>().empty() : !value.empty();
}

std::string type_of(const json& object) { return object.at("type").get<std::string>(); }

[[noreturn]] void refuse(const std::string& what) {
  throw UserError(what + " is not supported; byte-level BPE is, as GPT-2 and Llama 3 have it");
}

// Calls `read`; a mistake in it is of this part of the file.
void in_part(const char* name, const std::function<void()>& read) {
  try {
    read();
  } catch (const json::exception& e) {
    throw UserError(fmt::format("{}: {}", name, e.what()));
  } catch (const std::invalid_argument& e) {
    throw UserError(fmt::format("{}: {}", name, e.what()));
  }
}

std::vector<AddedToken> read_added(const json& list) {
  std::vector<AddedToken> tokens;
  for (const json& entry : list) {
    AddedToken added{.token = token_number(entry.at("id")),
                     .text = entry.at("content").get<std::string>(),
                     .is_special = entry.value("special", false)};
    if (added.text.empty()) {
      throw std::invalid_argument(fmt::format("the token {} is an empty text", added.token));
    }
    for (const char* option : {"single_word", "lstrip", "rstrip"}) {
      if (!is_set(entry, option)) continue;
      refuse(fmt::format("the option {} of the added token '{}'", option, added.text));
    }
    tokens.push_back(std::move(added));
  }
  return tokens;
}

void check_normalizer(const json& normalizer) {
  if (normalizer.is_null()) return;
  if (type_of(normalizer) != "Sequence") refuse("the normalizer " + type_of(normalizer));
  for (const json& part : normalizer.at("normalizers")) check_normalizer(part);
}

Split read_split(const json& step) {
  const json& pattern = step.at("pattern");
  if (!pattern.contains("Regex")) refuse("a Split by something else than a Regex");
  const auto behavior = step.at("behavior").get<std::string>();
  const bool inverted = is_set(step, "invert");
  Split split{.pattern = pattern.at("Regex").get<std::string>()};
  if (behavior == "Removed") {
    (inverted ? split.drops_gaps : split.drops_matches) = true;
  } else if (behavior != "Isolated") {
    refuse("a Split with the behavior " + behavior);
  }
  return split;
}

// `is_first`: no other step has cut the text.
void read_byte_level(const json& step, bool is_first, ByteLevelBpe::Parts& parts) {
  if (is_set(step, "add_prefix_space")) {
    if (!is_first) refuse("ByteLevel with add_prefix_space after another pre-tokenizer");
    parts.adds_space = true;
  }
  if (step.value("use_regex", true)) parts.splits.push_back({.pattern = std::string(kGpt2Pattern)});
}

void read_pre_tokenizer(const json& pre_tokenizer, ByteLevelBpe::Parts& parts) {
  if (pre_tokenizer.is_null()) refuse("no pre-tokenizer");
  const bool is_sequence = type_of(pre_tokenizer) == "Sequence";
  const json steps = is_sequence ? pre_tokenizer.at("pretokenizers") : json::array({pre_tokenizer});
  bool is_byte_level = false;
  for (const json& step : steps) {
    const std::string type = type_of(step);
    if (is_byte_level) refuse("the pre-tokenizer " + type + " after ByteLevel");
    if (type == "ByteLevel") {
      read_byte_level(step, parts.splits.empty(), parts);
      is_byte_level = true;
    } else if (type == "Split") {
      parts.splits.push_back(read_split(step));
    } else {
      refuse("the pre-tokenizer " + type);
    }
  }
  if (!is_byte_level) refuse("a BPE without the pre-tokenizer ByteLevel");
}

MergeList read_merges(const json& list) {
  MergeList merges;
  merges.reserve(list.size());
  for (const json& merge : list) {
    if (merge.is_string()) {
      merges.push_back(split_merge(merge.get_ref<const std::string&>()));
    } else {
      merges.emplace_back(merge.at(0).get<std::string>(), merge.at(1).get<std::string>());
    }
  }
  return merges;
}

void check_model(const json& model) {
  const std::string type = model.value("type", "BPE");
  if (type != "BPE") refuse("the model " + type);
  for (const char* option : {"dropout", "continuing_subword_prefix", "end_of_word_suffix",
                             "byte_fallback", "fuse_unk"}) {
    if (is_set(model, option)) refuse(fmt::format("the option {} of the model BPE", option));
  }
}

// Of those that model families have, where no tokenizer_config.json says.
std::optional<int32_t> usual_end_of_text(const AddedTokens& added) {
  for (const char* text : {"<|endoftext|>", "<|end_of_text|>", "</s>"}) {
    if (const auto token = added.token_of(text)) return token;
  }
  return std::nullopt;
}

std::optional<int32_t> find_end_of_text(const std::optional<std::string>& text,
                                        const std::vector<AddedToken>& tokens) {
  const AddedTokens added(tokens);
  if (!text) return usual_end_of_text(added);
  const auto token = added.token_of(*text);
  if (!token) throw UserError(fmt::format("the end-of-text token '{}' is not among them", *text));
  return token;
}

std::shared_ptr<const Tokenizer> make(const json& file,
                                      const std::optional<std::string>& end_of_text) {
  std::vector<AddedToken> added;
  std::optional<int32_t> end;
  in_part("added_tokens", [&] {
    added = read_added(member(file, "added_tokens"));
    end = find_end_of_text(end_of_text, added);
  });
  in_part("normalizer", [&] { check_normalizer(member(file, "normalizer")); });
  in_part("decoder", [&] {
    const std::string type = type_of(file.at("decoder"));
    if (type != "ByteLevel") refuse("the decoder " + type);
  });
  std::optional<ByteLevelBpe::Parts> parts;
  in_part("model", [&] {
    const json& model = file.at("model");
    check_model(model);
    VisibleBpe bpe = read_visible_bpe(read_vocabulary(model.at("vocab")), added,
                                      read_merges(model.at("merges")));
    parts = ByteLevelBpe::Parts{.vocabulary = std::move(bpe.vocabulary),
                                .merges = std::move(bpe.merges),
                                .added = std::move(added),
                                .takes_whole_words = is_set(model, "ignore_merges"),
                                .end_of_text = end};
  });
  in_part("pre_tokenizer", [&] { read_pre_tokenizer(member(file, "pre_tokenizer"), *parts); });
  return std::make_shared<ByteLevelBpe>(*std::move(parts));
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
