// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/made_with.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <system_error>

#include "trainer/base/user_error.h"
#include "trainer/base/utf8.h"
#include "trainer/config/tree/node.h"
#include "trainer/data/data_files.h"
#include "trainer/data/many_files.h"
#include "trainer/data/text/tokens_json.h"
#include "trainer/tokenizers/load_tokenizer.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// How far the tokens of two tokenizers differ. One tokenizer in two formats differs in a few: in
// special ones, which have no text in SentencePiece's, and in those added later.
struct Difference {
  int32_t differing = 0;
  int32_t compared = 0;
  int32_t first = 0;

  bool is_of_others() const { return int64_t{differing} * 100 > compared; }
};

std::optional<std::string> text_of(const Tokenizer& tokenizer, int32_t token) {
  if (token >= tokenizer.vocabulary_size()) return std::nullopt;
  return decoded_bytes(tokenizer, std::span(&token, 1));
}

Difference compare(const Tokenizer& made, const Tokenizer& read) {
  Difference found{.compared = made.vocabulary_size()};
  for (int32_t token = 0; token < found.compared; ++token) {
    if (text_of(made, token) == text_of(read, token)) continue;
    if (found.differing++ == 0) found.first = token;
  }
  return found;
}

std::string shown(const std::optional<std::string>& text) {
  constexpr size_t kShown = 40;
  return text ? fmt::format("'{}'", first_bytes(single_line(*text), kShown)) : "none";
}

// Empty where both are the same.
std::string difference_of(const std::string& made_name, const Tokenizer& made,
                          const ReadWith& with) {
  const Difference found = compare(made, with.tokenizer);
  if (!found.is_of_others()) return {};
  return fmt::format(
      "the tokens are of the tokenizer '{}' ({} tokens), but {} is '{}' ({} tokens), in which {} "
      "of them are others: token {} is {} in the first and {} in the second",
      made_name, made.vocabulary_size(), with.field, with.name.string(),
      with.tokenizer.vocabulary_size(), found.differing, found.first,
      shown(text_of(made, found.first)), shown(text_of(with.tokenizer, found.first)));
}

// What a folder's tokens.json says; nothing where it says nothing.
std::optional<TokensJson> description_in(const fs::path& folder) {
  try {
    return read_tokens_json(folder / "tokens.json");
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

// The folder's own tokenizer, "bytes" where it has none; nothing where it is lost.
std::optional<fs::path> tokenizer_of_set(const fs::path& folder, const TokensJson& description) {
  std::error_code ignored;
  const fs::path own = folder / "tokenizer";
  if (fs::is_directory(own, ignored)) return own;
  if (description.tokenizer == "bytes") return "bytes";
  return std::nullopt;
}

std::shared_ptr<const Tokenizer> load_if_whole(const fs::path& name) {
  try {
    return load_tokenizer("", name).tokenizer;
  } catch (const UserError&) {
    return nullptr;
  }
}

bool are_same(const fs::path& a, const fs::path& b) {
  std::error_code ignored;
  return a == b || fs::equivalent(a, b, ignored);
}

// The folders that may have a tokens.json beside the files of a path.
void add_folders(const fs::path& path, std::set<fs::path>& folders) {
  std::error_code ignored;
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (fs::is_directory(parent, ignored)) {
    folders.insert(parent);
    return;
  }
  try {
    for (const fs::path file : find_data_files("", path)) folders.insert(file.parent_path());
  } catch (const UserError&) {
    // The prefix of a set, or nothing: opening it says so.
  }
}

std::set<fs::path> folders_of(const config::Node& section) {
  std::set<fs::path> folders;
  const config::Node* files = section.find("files");
  if (files == nullptr || !files->is_list()) return folders;
  for (const config::Node& file : files->items) add_folders(file.text, folders);
  return folders;
}

// The check of a source without parts.
void require_same_tokens(const std::string& field, const config::Chosen& source,
                         const ReadWith& with) {
  if (const fs::path own = own_tokenizer_of(source); !own.empty()) {
    const auto made = load_if_whole(own);
    const std::string problem = made ? difference_of(own.string(), *made, with) : std::string();
    if (problem.empty()) return;
    throw UserError(fmt::format("{}: {}; take one tokenizer for both", field, problem));
  }
  for (const fs::path& folder : folders_of(source.section())) {
    const std::string problem = problem_of_tokens(folder, with);
    if (problem.empty()) continue;
    throw UserError(fmt::format(
        "{}.files: {}; set {} to the tokenizer that made the tokens, or make them again with "
        "`trainer tokenize`",
        field, problem, with.field));
  }
}

}  // namespace

fs::path own_tokenizer_of(const config::Chosen& source) {
  if (source.name() == "bytes") return "bytes";
  const config::Node* own = source.section().find("tokenizer");
  return own != nullptr && own->is_scalar() ? own->text : "";
}

std::string problem_of_tokens(const fs::path& folder, const ReadWith& with) {
  const auto description = description_in(folder);
  if (!description) return {};
  const auto name = tokenizer_of_set(folder, *description);
  if (name && are_same(*name, with.name)) return {};
  const auto made = name ? load_if_whole(*name) : nullptr;
  if (made) return difference_of(name->string(), *made, with);
  if (description->vocabulary_size.value_or(0) <= with.tokenizer.vocabulary_size()) return {};
  return fmt::format(
      "the tokens are of a tokenizer of {} tokens, as '{}' says, but {} is '{}', which has {}",
      *description->vocabulary_size, (folder / "tokens.json").string(), with.field,
      with.name.string(), with.tokenizer.vocabulary_size());
}

void require_made_with(const std::string& field, const config::Chosen& source,
                       const ReadWith& with) {
  const config::Node& section = source.section();
  if (const config::Node* parts = section.find("sources"); parts != nullptr && parts->is_list()) {
    for (size_t i = 0; i < parts->items.size(); ++i) {
      require_made_with(fmt::format("{}.sources[{}]", field, i), config::Chosen(parts->items[i]),
                        with);
    }
    return;
  }
  if (const fs::path own = own_tokenizer_of(source); !own.empty() && are_same(own, with.name)) {
    return;
  }
  // Large vocabularies take seconds to be read.
  look_for_files("comparing the tokenizers of " + field,
                 [&] { require_same_tokens(field, source, with); });
}

}  // namespace phalanx
