// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/load_tokenizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/io/file.h"
#include "trainer/io/hub_name.h"
#include "trainer/tokenizers/byte_tokenizer.h"
#include "trainer/tokenizers/character_tokenizer.h"
#include "trainer/tokenizers/gpt2_files.h"
#include "trainer/tokenizers/sentencepiece_tokenizer.h"
#include "trainer/tokenizers/tokenizer_json.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCharactersFile = "characters.txt";
constexpr const char* kModelFile = "tokenizer.model";

using Texts = std::vector<std::string>;

// A kind of tokenizer: the names of the files that it needs, and what reads their texts.
struct Format {
  std::vector<const char*> needed;
  std::vector<const char*> optional;
  std::shared_ptr<const Tokenizer> (*parse)(const Texts& texts);  // Empty: not there.
};

std::shared_ptr<const Tokenizer> parse_json_files(const Texts& texts) {
  if (texts[1].empty()) return parse_tokenizer_json(texts[0], {});
  std::optional<std::string> end_of_text;
  try {
    end_of_text = end_of_text_of_config(texts[1]);
  } catch (const UserError& e) {
    throw UserError(fmt::format("of tokenizer_config.json beside it: {}", e.what()));
  }
  return parse_tokenizer_json(texts[0], end_of_text);
}

std::shared_ptr<const Tokenizer> parse_pair(const Texts& texts) {
  return parse_gpt2_files(texts[0], texts[1]);
}

std::shared_ptr<const Tokenizer> parse_characters(const Texts& texts) {
  return std::make_shared<CharacterTokenizer>(texts[0]);
}

std::shared_ptr<const Tokenizer> parse_model(const Texts& texts) {
  return std::make_shared<SentencePieceTokenizer>(texts[0]);
}

// The first that fits is taken. Beside a spiece.model (T5) lies a tokenizer.json of a unigram
// model; beside a tokenizer.model (Llama 2) one that may have more tokens.
const std::vector<Format>& formats() {
  static const std::vector<Format> all{
      {{"spiece.model"}, {}, parse_model},
      {{"tokenizer.json"}, {"tokenizer_config.json"}, parse_json_files},
      {{"encoder.json", "vocab.bpe"}, {}, parse_pair},
      {{"vocab.json", "merges.txt"}, {}, parse_pair},
      {{kModelFile}, {}, parse_model},
      {{kCharactersFile}, {}, parse_characters},
  };
  return all;
}

bool is_file(const fs::path& path) {
  std::error_code error;  // Reading it will say more.
  return fs::is_regular_file(path, error);
}

bool has_all(const fs::path& folder, const Format& format) {
  return std::all_of(format.needed.begin(), format.needed.end(),
                     [&](const char* name) { return is_file(folder / name); });
}

bool has_file_named(const Format& format, const fs::path& name) {
  return std::find(format.needed.begin(), format.needed.end(), name) != format.needed.end();
}

// What the user can name, for messages.
std::string known_files() {
  std::vector<std::string> sets;
  for (const Format& format : formats()) {
    sets.push_back(fmt::format("{}", fmt::join(format.needed, " with ")));
  }
  return fmt::format("{}", fmt::join(sets, "; "));
}

LoadedTokenizer read(const fs::path& folder, const Format& format) {
  LoadedTokenizer loaded{.tokenizer = {}, .format = format.needed.front(), .files = {}};
  Texts texts;
  const auto take = [&](const char* name) {
    const bool is_there = is_file(folder / name);
    texts.push_back(is_there ? read_text(folder / name) : std::string());
    if (is_there) loaded.files.push_back({.name = name, .content = texts.back()});
  };
  std::for_each(format.needed.begin(), format.needed.end(), take);
  std::for_each(format.optional.begin(), format.optional.end(), take);
  try {
    loaded.tokenizer = format.parse(texts);
  } catch (const UserError& e) {
    throw UserError(fmt::format("'{}': {}", (folder / format.needed.front()).string(), e.what()));
  }
  return loaded;
}

// A file with any name that ends in .model; its copies are called as folders are searched.
LoadedTokenizer read_model(const fs::path& path) {
  std::string content = read_text(path);
  try {
    auto tokenizer = std::make_shared<SentencePieceTokenizer>(content);
    return {.tokenizer = std::move(tokenizer),
            .format = kModelFile,
            .files = {{.name = kModelFile, .content = std::move(content)}}};
  } catch (const UserError& e) {
    throw UserError(fmt::format("'{}': {}", path.string(), e.what()));
  }
}

LoadedTokenizer load(const fs::path& name) {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(name, ignored);
  if (!is_folder && !is_file(name)) {
    throw UserError(fmt::format(
        "{}; 'bytes' names the tokenizer of bytes, and a checkpoint carries that of its "
        "run in its folder attachments",
        about_missing(name)));
  }
  if (!is_folder && name.extension() == ".model") return read_model(name);
  const fs::path folder = is_folder ? name : name.parent_path();
  for (const Format& format : formats()) {
    if ((is_folder || has_file_named(format, name.filename())) && has_all(folder, format)) {
      return read(folder, format);
    }
  }
  throw UserError(fmt::format(
      "'{}' is no tokenizer: its files are {}; any other .model of SentencePiece can be "
      "named itself",
      name.string(), known_files()));
}

}  // namespace

std::vector<std::string> tokenizer_file_names(std::span<const std::string> names) {
  const auto is_there = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const Format& format : formats()) {
    if (!std::all_of(format.needed.begin(), format.needed.end(), is_there)) continue;
    std::vector<std::string> read(format.needed.begin(), format.needed.end());
    std::copy_if(format.optional.begin(), format.optional.end(), std::back_inserter(read),
                 is_there);
    return read;
  }
  return {};
}

LoadedTokenizer load_tokenizer(const std::string& field, const fs::path& name) {
  try {
    if (name == "bytes") {
      return {.tokenizer = std::make_shared<ByteTokenizer>(), .format = "bytes", .files = {}};
    }
    return load(name);
  } catch (const UserError& e) {
    throw UserError(fmt::format("{}: {}", field, e.what()));
  } catch (const IoError& e) {
    throw UserError(fmt::format("{}: {}", field, e.what()));
  }
}

}  // namespace phalanx
