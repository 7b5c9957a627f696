// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/tokenizer_json_parts.h"

#include <fmt/format.h>

#include <optional>
#include <stdexcept>
#include <utility>

#include "trainer/base/json_cause.h"
#include "trainer/base/user_error.h"
#include "trainer/tokenizers/json_vocabulary.h"
#include "trainer/tokenizers/unicode/characters.h"
#include "trainer/tokenizers/unsupported_part.h"

namespace phalanx {

using nlohmann::json;

namespace {

const json kNothing = nullptr;

}  // namespace

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

char32_t character_of(const json& value) {
  const auto text = value.get<std::string>();
  if (unicode::count_characters(text) != 1) {
    throw std::invalid_argument(fmt::format("'{}' is not one character", text));
  }
  return unicode::character_at(text, 0).code;
}

std::vector<json> steps_of(const json& value, const std::string& list) {
  if (value.is_null()) return {};
  if (type_of(value) != "Sequence") return {value};
  std::vector<json> steps;
  for (const json& part : value.at(list)) {
    for (json& step : steps_of(part, list)) steps.push_back(std::move(step));
  }
  return steps;
}

[[noreturn]] void refuse_part(const std::string& what) {
  throw UnsupportedPart(what + " is not supported");
}

void in_part(const char* name, const std::function<void()>& read) {
  try {
    read();
  } catch (const json::exception& e) {
    throw UserError(fmt::format("{}: {}", name, json_cause(e)));
  } catch (const std::invalid_argument& e) {
    throw UserError(fmt::format("{}: {}", name, e.what()));
  }
}

std::vector<AddedToken> read_added(const json& list) {
  std::vector<AddedToken> tokens;
  std::optional<bool> normalized;
  for (const json& entry : list) {
    AddedToken added{.token = token_number(entry.at("id")),
                     .text = entry.at("content").get<std::string>(),
                     .is_special = entry.value("special", false)};
    if (added.text.empty()) {
      throw std::invalid_argument(fmt::format("the token {} is an empty text", added.token));
    }
    for (const char* option : {"single_word", "lstrip", "rstrip"}) {
      if (!is_set(entry, option)) continue;
      refuse_part(fmt::format("the option {} of the added token '{}'", option, added.text));
    }
    // Two kinds are looked for one after the other.
    const bool is_normalized = entry.value("normalized", !added.is_special);
    if (normalized.value_or(is_normalized) != is_normalized)
      refuse_part("added tokens of two kinds");
    normalized = is_normalized;
    tokens.push_back(std::move(added));
  }
  return tokens;
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

}  // namespace phalanx
