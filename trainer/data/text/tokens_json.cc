// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/tokens_json.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <system_error>

#include "trainer/base/json_cause.h"
#include "trainer/base/user_error.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kMostCounted = uint64_t{1} << 56;

int64_t count_at(const json& description, const char* name) {
  const json& value = description.at(name);
  if (!is_count(value)) throw UserError(fmt::format("{} is {}, no count", name, value.dump()));
  return value.get<int64_t>();
}

TokenFileFormat format_of(const json& description) {
  const json& name = description.at("format");
  const auto format = name.get<TokenFileFormat>();
  // An unknown name becomes the first of them.
  if (json(format) != name) throw UserError(fmt::format("format is {}", name.dump()));
  return format;
}

TokensJson described(const json& description) {
  TokensJson tokens{.format = format_of(description),
                    .bytes_per_token = count_at(description, "bytes_per_token")};
  if (tokens.bytes_per_token != 2 && tokens.bytes_per_token != 4) {
    throw UserError(fmt::format("bytes_per_token is {}", tokens.bytes_per_token));
  }
  const bool has_end = !description.at("end_of_text").is_null();
  if (has_end) tokens.end_of_text = count_at(description, "end_of_text");
  const auto stored = [&](const std::string& prefix) {
    return count_at(description, (prefix + "tokens").c_str()) +
           (has_end ? count_at(description, (prefix + "documents").c_str()) : 0);
  };
  tokens.validation_tokens = stored("validation_");
  tokens.training_tokens = stored("") - tokens.validation_tokens;
  tokens.tokenizer = description.value("tokenizer", "");
  if (description.contains("vocabulary_size")) {
    tokens.vocabulary_size = count_at(description, "vocabulary_size");
  }
  if (tokens.training_tokens < 0) throw UserError("more tokens are for validation than there are");
  return tokens;
}

}  // namespace

bool is_count(const json& value) {
  return value.is_number_unsigned() && value.get<uint64_t>() <= kMostCounted;
}

TokensJson read_tokens_json(const fs::path& path) {
  const std::string text = read_text(path);
  try {
    return described(json::parse(text));
  } catch (const std::exception& e) {
    throw UserError(
        fmt::format("'{}' is broken: {}: make the tokens again", path.string(), json_cause(e)));
  }
}

bool has_all_training_tokens(const fs::path& folder) {
  const TokensJson tokens = read_tokens_json(folder / "tokens.json");
  const int64_t header = tokens.format == TokenFileFormat::llmc ? kLlmcHeaderBytes : 0;
  int64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const fs::path& file = entry.path();
    if (!file.filename().native().starts_with("train_") || file.extension() != ".bin") continue;
    bytes += static_cast<int64_t>(entry.file_size()) - header;
  }
  return bytes == tokens.training_tokens * tokens.bytes_per_token;
}

}  // namespace phalanx
