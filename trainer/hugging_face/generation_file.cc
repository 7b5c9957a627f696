// SPDX-License-Identifier: Apache-2.0
#include "trainer/hugging_face/generation_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "trainer/base/json_cause.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kEnd = "eos_token_id";
constexpr const char* kStart = "bos_token_id";

Json parsed(const std::string& content, const std::string& place) {
  try {
    Json json = Json::parse(content);
    if (json.is_object()) return json;
  } catch (const Json::exception& error) {
    throw UserError(fmt::format("'{}' is no JSON: {}", place, json_cause(error)));
  }
  throw UserError(fmt::format("'{}' is no JSON object", place));
}

std::vector<int64_t> ends_of(const Json& json) {
  const auto value = json.find(kEnd);
  if (value == json.end()) return {};
  std::vector<int64_t> ends;
  for (const Json& each : value->is_array() ? *value : Json::array({*value})) {
    if (each.is_number_integer()) ends.push_back(each.get<int64_t>());
  }
  return ends;
}

}  // namespace

std::vector<int64_t> end_tokens(const std::string& content, const std::string& place) {
  return ends_of(parsed(content, place));
}

std::optional<int64_t> start_token(const std::string& content, const std::string& place) {
  const Json json = parsed(content, place);
  const auto value = json.find(kStart);
  if (value == json.end() || !value->is_number_integer()) return std::nullopt;
  return value->get<int64_t>();
}

std::string with_end_token(const std::string& content, int64_t end, const std::string& place) {
  Json json = parsed(content, place);
  const std::vector<int64_t> ends = ends_of(json);
  if (std::find(ends.begin(), ends.end(), end) != ends.end()) return content;
  json[kEnd] = end;
  return json.dump(2) + "\n";
}

}  // namespace phalanx
