// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/character_bpe_json.h"

#include <fmt/format.h>

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/tokenizers/character_bpe.h"
#include "trainer/tokenizers/json_vocabulary.h"
#include "trainer/tokenizers/tokenizer_json_parts.h"

namespace phalanx {
namespace {

using nlohmann::json;

constexpr const char* kSpace = "\u2581";

bool is_text(const json& value, std::string_view text) {
  return value.is_string() && value.get_ref<const std::string&>() == text;
}

// Whether a step replaces one text by another, both given.
bool replaces(const json& step, const char* from, const char* to) {
  return is_text(member(step.at("pattern"), "String"), from) && is_text(step.at("content"), to);
}

void read_normalizer(const json& normalizer, CharacterBpe::Parts& parts) {
  for (const json& step : steps_of(normalizer, "normalizers")) {
    const std::string type = type_of(step);
    if (type == "Prepend" && is_text(step.at("prepend"), kSpace)) {
      parts.prefix = CharacterBpe::Prefix::always;
    } else if (type == "Replace" && replaces(step, " ", kSpace)) {
      parts.replaces_spaces = true;
    } else {
      refuse_part(fmt::format("the normalizer {}", step.dump()));
    }
  }
}

// The `prepend_scheme` of a Metaspace, or what stood for it before.
std::string prepend_scheme(const json& metaspace) {
  const json& scheme = member(metaspace, "prepend_scheme");
  if (!is_text(member(metaspace, "replacement"), kSpace)) {
    refuse_part("a Metaspace with another replacement than \u2581");
  }
  if (!scheme.is_null()) return scheme.get<std::string>();
  return metaspace.value("add_prefix_space", true) ? "always" : "never";
}

CharacterBpe::Prefix read_prefix(const std::string& scheme) {
  if (scheme == "always") return CharacterBpe::Prefix::unless_there;
  if (scheme == "first") return CharacterBpe::Prefix::unless_there_first;
  if (scheme != "never") refuse_part("a Metaspace with the prepend_scheme " + scheme);
  return CharacterBpe::Prefix::never;
}

void read_metaspace(const json& step, CharacterBpe::Parts& parts) {
  if (parts.replaces_spaces || parts.prefix != CharacterBpe::Prefix::never) {
    refuse_part("a Metaspace with a normalizer");
  }
  parts.prefix = read_prefix(prepend_scheme(step));
  parts.replaces_spaces = true;
  parts.splits_words = step.value("split", true);
}

void read_pre_tokenizer(const json& pre_tokenizer, CharacterBpe::Parts& parts) {
  const std::vector<json> steps = steps_of(pre_tokenizer, "pretokenizers");
  if (steps.size() > 1) refuse_part("a pre-tokenizer of several steps");
  for (const json& step : steps) {
    const std::string type = type_of(step);
    // Gemma's, which finds nothing: the normalizer has replaced all spaces.
    const bool finds_nothing = type == "Split" && parts.replaces_spaces &&
                               is_text(member(step.at("pattern"), "String"), " ") &&
                               !is_set(step, "invert");
    if (type == "Metaspace") {
      read_metaspace(step, parts);
    } else if (!finds_nothing) {
      refuse_part("the pre-tokenizer " + type);
    }
  }
}

// The steps that may follow each other, each at most once.
enum Step { kReplace, kByteFallback, kFuse, kStrip, kSteps };

Step read_step(const json& step) {
  const std::string type = type_of(step);
  if (type == "Replace" && replaces(step, kSpace, " ")) return kReplace;
  if (type == "ByteFallback") return kByteFallback;
  if (type == "Fuse") return kFuse;
  if (type == "Strip" && is_text(step.at("content"), " ") && step.at("start") == 1 &&
      step.at("stop") == 0) {
    return kStrip;
  }
  refuse_part(fmt::format("the decoder {}", step.dump()));
}

CharacterBpe::Decoding read_decoder(const json& decoder) {
  const std::vector<json> steps = steps_of(decoder, "decoders");
  if (steps.empty()) refuse_part("no decoder");
  if (steps.size() == 1 && type_of(steps[0]) == "Metaspace") {
    return {.drops_spaces_of_first_token = prepend_scheme(steps[0]) != "never"};
  }
  std::array<bool, kSteps> has{};
  int next = kReplace;
  for (const json& step : steps) {
    const Step found = read_step(step);
    if (found < next) refuse_part("the decoder " + type_of(step) + " in this place");
    has[found] = true;
    next = found + 1;
  }
  if (has[kStrip] && !has[kFuse]) refuse_part("the decoder Strip without Fuse");
  return {.shows_spaces = has[kReplace],
          .joins_bytes = has[kByteFallback],
          .drops_first_space = has[kStrip]};
}

// A token to be found in the normalized text is refused: all are found in the text as it is.
void check_normalized(const json& list) {
  for (const json& entry : list) {
    if (is_set(entry, "special") || !entry.value("normalized", true)) continue;
    refuse_part(fmt::format("the option normalized of the added token '{}' with a normalizer",
                            entry.at("content").get<std::string>()));
  }
}

void check_added(const std::vector<AddedToken>& added, const Vocabulary& vocabulary) {
  for (const AddedToken& token : added) {
    const auto other = vocabulary.find(token.text);
    if (!other || *other == token.token) continue;
    throw std::invalid_argument(
        fmt::format("'{}' is {}, but {} in the vocabulary", token.text, token.token, *other));
  }
}

int32_t token_of(const Vocabulary& vocabulary, const std::string& text, const char* what) {
  if (const auto token = vocabulary.find(text)) return *token;
  throw std::invalid_argument(fmt::format("{} '{}', which the vocabulary lacks", what, text));
}

Merges make_merges(const MergeList& list, const Vocabulary& vocabulary) {
  Merges merges;
  const auto token = [&](const std::string& text) {
    return token_of(vocabulary, text, "the merges need the token");
  };
  for (const auto& [left, right] : list) {
    const int32_t left_token = token(left);
    const int32_t right_token = token(right);
    merges.add(left_token, right_token, token(left + right));
  }
  return merges;
}

CharacterBpe::Parts read_model(const json& model) {
  Vocabulary vocabulary(read_vocabulary(model.at("vocab")));
  std::optional<int32_t> unknown;
  if (is_set(model, "unk_token")) {
    unknown = token_of(vocabulary, model.at("unk_token").get<std::string>(), "the unk_token is");
  }
  Merges merges = make_merges(read_merges(model.at("merges")), vocabulary);
  return {.vocabulary = std::move(vocabulary),
          .merges = std::move(merges),
          .unknown = unknown,
          .fuses_unknown = is_set(model, "fuse_unk"),
          .byte_fallback = is_set(model, "byte_fallback"),
          .takes_whole_words = is_set(model, "ignore_merges")};
}

}  // namespace

std::shared_ptr<const Tokenizer> make_character_bpe(const json& file, std::vector<AddedToken> added,
                                                    std::optional<int32_t> end_of_text) {
  std::optional<CharacterBpe::Parts> parts;
  const auto read = [&](const char* name, const auto& function) {
    in_part(name, [&] { function(member(file, name)); });
  };
  in_part("model", [&] { parts = read_model(file.at("model")); });
  in_part("added_tokens", [&] { check_added(added, parts->vocabulary); });
  parts->added = std::move(added);
  parts->end_of_text = end_of_text;
  read("normalizer", [&](const json& value) { read_normalizer(value, *parts); });
  if (parts->replaces_spaces || parts->prefix != CharacterBpe::Prefix::never) {
    read("added_tokens", check_normalized);
  }
  read("pre_tokenizer", [&](const json& value) { read_pre_tokenizer(value, *parts); });
  read("decoder", [&](const json& value) { parts->decoding = read_decoder(value); });
  return std::make_shared<CharacterBpe>(*std::move(parts));
}

}  // namespace phalanx
