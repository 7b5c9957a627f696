// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/checkpoint/tokenizer_end.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace phalanx {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTokenizer = "tokenizer.json";
constexpr const char* kConfig = "tokenizer_config.json";
constexpr const char* kEnd = "eos_token";
constexpr const char* kClass = "tokenizer_class";
// What takes tokenizer.json as it is.
constexpr const char* kAnyTokenizer = "PreTrainedTokenizerFast";

Attachment* find(Attachments& files, const std::string& name) {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const Attachment& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

// The object in a file; null where it is not there, or none.
Json object_in(Attachments& files, const std::string& name) {
  const Attachment* file = find(files, name);
  Json json = file == nullptr ? Json() : Json::parse(file->content, nullptr, false);
  return json.is_object() ? json : Json();
}

const Json& member(const Json& object, const char* name) {
  static const Json none;
  const bool is_there = object.is_object() && object.contains(name);
  return is_there ? object.at(name) : none;
}

// Finds the text of a token in {"the": 5}, or in [["the", -1.5]], whose places are the tokens.
std::optional<std::string> text_in(const Json& vocabulary, int64_t token) {
  if (vocabulary.is_array()) {
    if (token < 0 || static_cast<uint64_t>(token) >= vocabulary.size()) return std::nullopt;
    const Json& entry = vocabulary.at(static_cast<std::size_t>(token));
    const bool has_text = entry.is_array() && !entry.empty() && entry.front().is_string();
    return has_text ? std::optional(entry.front().get<std::string>()) : std::nullopt;
  }
  if (!vocabulary.is_object()) return std::nullopt;
  for (const auto& [text, number] : vocabulary.items()) {
    if (number == token) return text;
  }
  return std::nullopt;
}

/// The texts of a tokenizer's tokens, where its files are JSON.
class TokenTexts {
 public:
  explicit TokenTexts(Attachments& files) : tokenizer_(object_in(files, kTokenizer)) {
    for (const char* name : {"vocab.json", "encoder.json", "added_tokens.json"}) {
      others_.push_back(object_in(files, name));
    }
  }

  std::optional<std::string> text_of(int64_t token) const {
    for (const Json& added : member(tokenizer_, "added_tokens")) {
      if (member(added, "id") == token && member(added, "content").is_string()) {
        return added.at("content").get<std::string>();
      }
    }
    if (auto text = text_in(member(member(tokenizer_, "model"), "vocab"), token)) return text;
    for (const Json& vocabulary : others_) {
      if (auto text = text_in(vocabulary, token)) return text;
    }
    return std::nullopt;
  }

 private:
  Json tokenizer_;
  std::vector<Json> others_;
};

// Sets the text of a token that a file has as a text, or as an object with its content.
void set_end(const std::string& text, Json& file) {
  Json& token = file[kEnd];
  if (token.is_object()) {
    token["content"] = text;
  } else {
    token = text;
  }
}

std::optional<std::string> end_in(const Json& file) {
  const Json& token = member(file, kEnd);
  const Json& text = token.is_object() ? member(token, "content") : token;
  return text.is_string() ? std::optional(text.get<std::string>()) : std::nullopt;
}

// As GPT-2's own is.
bool is_byte_level_bpe(const Json& tokenizer) {
  return member(member(tokenizer, "model"), "type") == "BPE" &&
         member(member(tokenizer, "decoder"), "type") == "ByteLevel";
}

}  // namespace

void name_end_in_tokenizer(std::span<const int64_t> ends, Attachments& files) {
  if (ends.empty()) return;
  const TokenTexts tokens(files);
  std::vector<std::string> texts;
  for (const int64_t end : ends) {
    if (auto text = tokens.text_of(end)) texts.push_back(std::move(*text));
  }
  if (texts.empty()) return;
  const auto is_end = [&](const std::optional<std::string>& text) {
    return text && std::find(texts.begin(), texts.end(), *text) != texts.end();
  };
  for (const char* name : {kConfig, "special_tokens_map.json"}) {
    Json file = object_in(files, name);
    const bool needs_it = name == std::string(kConfig) || file.contains(kEnd);
    if (file.is_null() || !needs_it || is_end(end_in(file))) continue;
    set_end(texts.front(), file);
    find(files, name)->content = file.dump(2) + "\n";
  }
  if (find(files, kTokenizer) == nullptr || find(files, kConfig) != nullptr) return;
  Json made{{kEnd, texts.front()}, {kClass, kAnyTokenizer}};
  files.push_back({.name = kConfig, .content = made.dump(2) + "\n"});
}

void name_class_of_tokenizer(const std::string& model_type, Attachments& files) {
  if (find(files, kTokenizer) == nullptr || find(files, "spiece.model") != nullptr) return;
  if (find(files, kConfig) == nullptr) files.push_back({.name = kConfig, .content = "{}"});
  Json config = object_in(files, kConfig);
  const bool is_named = !member(config, kClass).is_null() || config.contains("auto_map");
  const bool is_usual =
      !config.empty() && model_type == "gpt2" && is_byte_level_bpe(object_in(files, kTokenizer));
  if (config.is_null() || is_named || is_usual) return;
  config[kClass] = kAnyTokenizer;
  find(files, kConfig)->content = config.dump(2) + "\n";
}

}  // namespace phalanx
