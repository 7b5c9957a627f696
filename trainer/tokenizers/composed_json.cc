// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/composed_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "trainer/tokenizers/composed_tokenizer.h"
#include "trainer/tokenizers/decoders/read_decoders.h"
#include "trainer/tokenizers/json_vocabulary.h"
#include "trainer/tokenizers/models/read_model.h"
#include "trainer/tokenizers/normalizers/read_normalizer.h"
#include "trainer/tokenizers/pre_tokenizers/read_pre_tokenizer.h"
#include "trainer/tokenizers/tokenizer_json_parts.h"

namespace phalanx {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestPattern = 1 << 20;

// What stands for the text of an added token where it is looked for.
std::string pattern_of(const AddedEntry& entry, const Normalizer* normalizer) {
  if (!entry.normalized || normalizer == nullptr) return entry.text;
  NormalizedText text{.text = entry.text, .at_start = 0, .most_bytes = kLongestPattern};
  normalizer->apply(text);
  return text.text;
}

AddedEntry read_entry(const json& object, const Normalizer* normalizer) {
  AddedEntry entry{.token = token_number(object.at("id")),
                   .text = object.at("content").get<std::string>(),
                   .pattern = {},
                   .is_special = object.value("special", false),
                   .single_word = object.value("single_word", false),
                   .strips_left = object.value("lstrip", false),
                   .strips_right = object.value("rstrip", false),
                   .normalized = false};
  entry.normalized = object.value("normalized", !entry.is_special);
  if (entry.text.empty()) {
    throw std::invalid_argument(fmt::format("the token {} is an empty text", entry.token));
  }
  entry.pattern = pattern_of(entry, normalizer);
  return entry;
}

// The package looks for one of two such tokens, and which is a matter of chance.
void check_patterns(const std::vector<AddedEntry>& entries) {
  std::map<std::pair<bool, std::string>, std::string> seen;
  for (const AddedEntry& entry : entries) {
    if (entry.pattern.empty()) {
      throw std::invalid_argument(
          fmt::format("the normalizer leaves nothing of the added token '{}'", entry.text));
    }
    const auto [other, is_new] =
        seen.emplace(std::pair(entry.normalized, entry.pattern), entry.text);
    if (is_new) continue;
    throw std::invalid_argument(
        fmt::format("the added tokens '{}' and '{}' are the same text", other->second, entry.text));
  }
}

std::vector<AddedEntry> read_entries(const json& list, const Normalizer* normalizer) {
  std::vector<AddedEntry> entries;
  for (const json& object : list) entries.push_back(read_entry(object, normalizer));
  check_patterns(entries);
  return entries;
}

// The package numbers added tokens by itself: by the vocabulary, or else from its size on.
void check_numbers(const std::vector<AddedEntry>& entries, const Model& model) {
  auto next = static_cast<int32_t>(model.count());
  for (const AddedEntry& entry : entries) {
    const auto known = model.token_of(entry.text);
    const int32_t expected = known ? *known : next++;
    if (entry.token == expected) continue;
    throw std::invalid_argument(fmt::format("'{}' is {}, but {} {}", entry.text, entry.token,
                                            expected,
                                            known ? "in the vocabulary" : "is the next number"));
  }
}

bool has_step(const json& value, const char* list, const char* type) {
  const std::vector<json> steps = steps_of(value, list);
  return std::any_of(steps.begin(), steps.end(),
                     [&](const json& step) { return type_of(step) == type; });
}

}  // namespace

std::shared_ptr<const Tokenizer> make_composed(const json& file,
                                               std::optional<int32_t> end_of_text) {
  ComposedTokenizer::Parts parts;
  parts.end_of_text = end_of_text;
  ModelContext context;
  in_part("normalizer", [&] {
    parts.normalizer = read_normalizer(member(file, "normalizer"));
    context.is_byte_level = has_step(member(file, "normalizer"), "normalizers", "ByteLevel");
  });
  in_part("pre_tokenizer", [&] {
    parts.pre_tokenizer = read_pre_tokenizer(member(file, "pre_tokenizer"));
    context.is_byte_level = context.is_byte_level ||
                            has_step(member(file, "pre_tokenizer"), "pretokenizers", "ByteLevel");
  });
  in_part("decoder", [&] { parts.decoders = read_decoders(member(file, "decoder")); });
  in_part("added_tokens", [&] {
    parts.added = read_entries(member(file, "added_tokens"), parts.normalizer.get());
  });
  for (const AddedEntry& entry : parts.added) {
    if (entry.is_special) context.hidden.insert(entry.text);
  }
  in_part("model", [&] { parts.model = read_model(file.at("model"), context); });
  in_part("added_tokens", [&] { check_numbers(parts.added, *parts.model); });
  return std::make_shared<ComposedTokenizer>(std::move(parts));
}

}  // namespace phalanx
