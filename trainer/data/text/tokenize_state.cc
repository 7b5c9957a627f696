// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/tokenize_state.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <string>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/base/utf8_repair.h"
#include "trainer/base/xxh3.h"
#include "trainer/data/text/tokens_json.h"
#include "trainer/io/file.h"

namespace phalanx {

// By name, as nlohmann::json finds them (NLOHMANN_DEFINE_TYPE_…).
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TokenWriter::State, files, tokens, documents)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DocumentReader::Position, file, offset)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TokenizeSummary, documents, empty_documents, tokens,
                                   validation_documents, validation_tokens, characters, longest,
                                   broken_characters)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TokenizeState, position, documents_read, training, validation,
                                   summary)
NLOHMANN_JSON_SERIALIZE_ENUM(DocumentUnit, {{DocumentUnit::file, "file"},
                                            {DocumentUnit::line, "line"},
                                            {DocumentUnit::paragraph, "paragraph"}})

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kStateFile = "state.json";

// A state holds nothing but counts.
bool has_only_counts(const json& state) {
  return state.is_object() ? std::all_of(state.begin(), state.end(), has_only_counts)
                           : is_count(state);
}

TokenizeState state_of(const json& file) {
  const json& written = file.at("state");
  if (!has_only_counts(written)) throw UserError("it holds what is no count");
  const auto state = written.get<TokenizeState>();
  if (static_cast<size_t>(state.position.file) > file.at("identity").at("texts").size()) {
    throw UserError("it is in a text that is none");
  }
  return state;
}

// All at once: a folder must not change while it is read.
std::vector<fs::path> paths_below(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) paths.push_back(entry.path());
  return paths;
}

json identity_of_text(const fs::path& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) throw IoError("look at", path, errno);
  const int64_t changed = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
  // JSON holds no other text.
  return {{"path", repaired_utf8(fs::absolute(path).string())},
          {"bytes", status.st_size},
          {"changed", changed}};
}

}  // namespace

json identity_of(const LoadedTokenizer& tokenizer, const TokenizeOptions& options) {
  json texts = json::array();
  for (const fs::path& file : options.files) texts.push_back(identity_of_text(file));
  json files = json::array();
  for (const TokenizerFile& file : tokenizer.files) files.push_back(xxh3_digits64(file.content));
  return {{"texts", texts},
          {"tokenizer", {{"format", tokenizer.format}, {"files", files}}},
          {"unit", options.unit},
          {"field", repaired_utf8(options.field)},
          {"format", options.format},
          {"validation_fraction", options.validation_fraction},
          {"file_tokens", options.file_tokens}};
}

json description_of(const LoadedTokenizer& tokenizer, const TokenizeOptions& options,
                    const TokenWriter::Layout& layout, const TokenizeState& state) {
  json description = state.summary;
  description["files"] = {{"train", state.training.files}, {"val", state.validation.files}};
  description["format"] = options.format;
  description["bytes_per_token"] = bytes_of(layout.type);
  description["tokenizer"] = tokenizer.format;
  description["vocabulary_size"] = tokenizer.tokenizer->vocabulary_size();
  description["end_of_text"] = layout.end_of_text ? json(*layout.end_of_text) : json(nullptr);
  return description;
}

std::optional<TokenizeState> read_state(const fs::path& folder, const json& identity) {
  const fs::path path = folder / kStateFile;
  if (!fs::exists(path)) return std::nullopt;
  const std::string text = read_text(path);
  std::string changed;
  try {
    const json file = json::parse(text);
    const json& begun = file.at("identity");
    if (begun == identity) return state_of(file);
    for (const auto& [name, value] : identity.items()) {
      if (begun.at(name) == value) continue;
      changed += fmt::format("{}{}", changed.empty() ? "" : ", ", name);
    }
  } catch (const std::exception& e) {
    throw UserError(fmt::format("'{}' is broken ({}): remove '{}' and begin anew", path.string(),
                                e.what(), folder.string()));
  }
  throw UserError(
      fmt::format("'{}' was begun with other input or options ({}): give the same ones to go on "
                  "there, or remove "
                  "it to begin anew",
                  folder.string(), changed));
}

void write_state(const fs::path& folder, const json& identity, const TokenizeState& state) {
  replace_file(folder / kStateFile, json{{"identity", identity}, {"state", state}}.dump());
}

void clear_work(const fs::path& folder) {
  for (const fs::path& path : paths_below(folder)) {
    if (path.filename() != kLockFile) remove_path(path);
  }
}

void remove_work_files(const fs::path& folder) {
  for (const fs::path& path : paths_below(folder)) {
    // A kill inside replace_file leaves the file that it prepares.
    const bool is_aside = path.filename().native().find(".tmp-") != std::string::npos;
    if (is_aside || path.extension() == ".lengths") remove_path(path);
  }
  remove_path(folder / kLockFile);
  remove_path(folder / kStateFile);
}

}  // namespace phalanx
