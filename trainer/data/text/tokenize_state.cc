// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/tokenize_state.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "trainer/base/json_cause.h"
#include "trainer/base/utf8_repair.h"
#include "trainer/base/xxh3.h"
#include "trainer/data/text/tokens_json.h"
#include "trainer/io/file.h"
#include "trainer/tokenizers/repeated_merges.h"

namespace phalanx {

// By name, as nlohmann::json finds them (NLOHMANN_DEFINE_TYPE_…).
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TokenWriter::State, files, tokens, documents)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DocumentReader::Position, file, offset, inside)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(UnfinishedDocument, tokens, characters, broken_characters,
                                   left_out)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TokenizeSummary, documents, empty_documents, tokens,
                                   validation_documents, validation_tokens, characters, longest,
                                   unknown_tokens, broken_characters, plain_json_files, left_out)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TokenizeState, position, documents_read, document, training,
                                   validation, summary)
NLOHMANN_JSON_SERIALIZE_ENUM(DocumentUnit, {{DocumentUnit::file, "file"},
                                            {DocumentUnit::line, "line"},
                                            {DocumentUnit::paragraph, "paragraph"}})

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kStateFile = "state.json";
constexpr const char* kTokensFile = "tokens.json";  // Written when the set is whole.

// A state holds nothing but counts.
bool has_only_counts(const json& state) {
  return state.is_object() ? std::all_of(state.begin(), state.end(), has_only_counts)
                           : is_count(state);
}

TokenizeState state_of(const json& file) {
  json written = file.at("state");
  if (const auto summary = written.find("summary"); summary != written.end()) {
    // An earlier version did not count them.
    if (summary->is_object()) summary->emplace("unknown_tokens", 0);
  }
  if (!has_only_counts(written)) throw UserError("it holds what is no count");
  const auto state = written.get<TokenizeState>();
  if (static_cast<size_t>(state.position.file) >
      file.at("identity").at("texts").at("files").get<size_t>()) {
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

// Paths, sizes and times of all: of a million files as little as of one.
json identity_of_texts(const FileList& files, const std::vector<TextState>& states) {
  Xxh3 hash;
  for (size_t i = 0; i < files.size(); ++i) {
    hash.add(fs::absolute(files[i]).native());
    hash.add(fmt::format("\n{} {}\n", states[i].bytes, states[i].changed));
  }
  return {{"files", files.size()}, {"hash", hash.digits128()}};
}

// Whether a folder has what is neither its lock nor left by a kill inside replace_file.
bool has_work(const fs::path& folder) {
  const std::vector<fs::path> paths = paths_below(folder);
  return std::any_of(paths.begin(), paths.end(), [](const fs::path& path) {
    return path.filename() != kLockFile && path.native().find(".tmp-") == std::string::npos;
  });
}

// What a person calls a part of an identity.
std::string name_of_part(const std::string& part) {
  static const std::map<std::string, std::string> names{
      {"texts", "the texts"},          {"unit", "--document"},
      {"tokenizer", "--tokenizer"},    {"field", "--field"},
      {"format", "--format"},          {"validation_fraction", "--val-fraction"},
      {"file_tokens", "--file-tokens"}};
  return names.at(part);
}

// The parts of an identity that are others in the one that work was begun with.
std::string changes_of(const json& begun, const json& identity) {
  if (begun.at("texts").is_array()) return "an earlier version of the trainer began it";
  std::string changed;
  for (const auto& [name, value] : identity.items()) {
    if (begun.at(name) != value) changed += (changed.empty() ? "" : ", ") + name_of_part(name);
  }
  return changed;
}

}  // namespace

std::vector<TextState> states_of(const FileList& files) {
  std::vector<TextState> states;
  states.reserve(files.size());
  for (const fs::path path : files) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) throw IoError("look at", path, errno);
    states.push_back({.bytes = status.st_size,
                      .changed = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec});
  }
  return states;
}

json identity_of(const LoadedTokenizer& tokenizer, const TokenizeOptions& options,
                 const std::vector<TextState>& texts) {
  json files = json::array();
  for (const TokenizerFile& file : tokenizer.files) files.push_back(xxh3_digits64(file.content));
  // Not gone on with: an earlier version took the first.
  if (repeats_merges(*tokenizer.tokenizer)) files.push_back("the last merge of a pair");
  return {{"texts", identity_of_texts(options.files, texts)},
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
  if (!fs::exists(path)) {
    // A kill right before the end leaves a whole set without its state, to be made again.
    if (!has_work(folder) || fs::exists(folder / kTokensFile)) return std::nullopt;
    throw OtherWork(
        fmt::format("'{}' has files, but no {} that says what they are: --restart removes them, or "
                    "name another --output",
                    folder.string(), kStateFile));
  }
  const std::string text = read_text(path);
  std::string changed;
  try {
    const json file = json::parse(text);
    const json& begun = file.at("identity");
    if (begun == identity) return state_of(file);
    const json& position = file.at("state").at("position");
    if (position.at("file") == 0 && position.at("offset") == 0) return std::nullopt;
    changed = changes_of(begun, identity);
  } catch (const std::exception& e) {
    throw UserError(
        fmt::format("'{}' is broken ({}): --restart throws away what '{}' holds, and begins anew",
                    path.string(), json_cause(e), folder.string()));
  }
  throw OtherWork(
      fmt::format("'{}' holds earlier work of other inputs or options ({}): give the same ones to "
                  "go on there; --restart throws that work away, and begins anew",
                  folder.string(), changed));
}

void write_state(const fs::path& folder, const json& identity, const TokenizeState& state) {
  replace_file(folder / kStateFile, json{{"identity", identity}, {"state", state}}.dump());
}

void clear_work(const fs::path& folder) {
  const fs::path state = folder / kStateFile;
  const fs::path tokens = folder / kTokensFile;
  for (const fs::path& path : paths_below(folder)) {
    if (path.filename() != kLockFile && path != state && path != tokens) remove_path(path);
  }
  remove_path(state);
  remove_path(tokens);
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
