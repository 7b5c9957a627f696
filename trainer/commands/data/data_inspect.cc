// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/base/utf8.h"
#include "trainer/cli/command.h"
#include "trainer/commands/counted.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/data/data_file.h"
#include "trainer/data/data_files.h"
#include "trainer/data/made_with.h"
#include "trainer/data/text/tokens_json.h"
#include "trainer/data/token_source.h"
#include "trainer/io/byte_progress.h"
#include "trainer/io/bytes_text.h"
#include "trainer/metrics/console.h"
#include "trainer/metrics/progress_line.h"
#include "trainer/tokenizers/load_tokenizer.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kTokensAtATime = 1 << 16;
constexpr int64_t kShownTokens = 40;
constexpr int64_t kShownDocuments = 3;

// A data set that a path names.
struct Named {
  fs::path path;
  std::string format;
  std::optional<fs::path> tokenizer = {};
  // What tokens.json says, if it is there.
  bool is_described = false;
  std::optional<int64_t> end_of_text = {};
  int64_t bytes_per_token = 2;
  std::optional<int64_t> tokens = {};  // Known for a whole set.

  // Whether the set can show where documents begin.
  bool has_documents() const { return !is_described || end_of_text || format == "megatron"; }
};

// The format that a file shows; nanoGPT's has nothing that shows it but its name.
std::string format_of_file(const fs::path& path) {
  if (path.extension() == ".idx" || fs::exists(fs::path(path).replace_extension(".idx"))) {
    return "megatron";
  }
  const DataFile file("SOURCE", path);
  std::array<unsigned char, sizeof(int32_t)> begin{};
  file.read(0, std::span(begin).first(std::min<size_t>(begin.size(), file.size())));
  const auto first = std::bit_cast<int32_t>(begin);
  if (first == 20240520 || first == 20240801) return "llmc";
  return path.extension() == ".bin" ? "nanogpt" : "bytes";
}

Named described_by(const TokensJson& description) {
  return {.path = {},
          .format = nlohmann::json(description.format).get<std::string>(),
          .is_described = true,
          .end_of_text = description.end_of_text,
          .bytes_per_token = description.bytes_per_token};
}

// What all files of a folder have in common that `tokenize` made.
Named described_in(const fs::path& folder, const TokensJson& description) {
  Named set = described_by(description);
  const fs::path tokenizer = folder / "tokenizer";
  set.tokenizer = fs::exists(tokenizer) ? tokenizer : "bytes";
  return set;
}

// The sets of such a folder.
std::vector<Named> sets_of_folder(const fs::path& folder) {
  const TokensJson description = read_tokens_json(folder / "tokens.json");
  Named set = described_in(folder, description);
  std::vector<Named> sets;
  for (const auto& [pattern, tokens] : {std::pair("train_*.bin", description.training_tokens),
                                        std::pair("val_*.bin", description.validation_tokens)}) {
    set.path = folder / pattern;
    set.tokens = tokens;
    if (tokens > 0) sets.push_back(set);
  }
  return sets;
}

// Whether `tokenize` has made a file, by its name and by what lies beside it.
bool is_of_set(const fs::path& file) {
  const std::string name = file.filename().string();
  return (name.starts_with("train_") || name.starts_with("val_")) &&
         fs::exists(file.parent_path() / "tokens.json");
}

// Files, by a path or a pattern.
Named set_of_files(const std::string& path) {
  const fs::path first = find_data_files("SOURCE", path)[0];
  if (!is_of_set(first)) return {.path = path, .format = format_of_file(first)};
  const fs::path folder = first.parent_path();
  Named set = described_in(folder, read_tokens_json(folder / "tokens.json"));
  set.path = path;
  return set;
}

std::vector<Named> named_by(const Invocation& invocation) {
  std::vector<Named> sets;
  const auto format = invocation.value("--format");
  for (const std::string& path : invocation.arguments) {
    if (!format && fs::exists(fs::path(path) / "tokens.json")) {
      for (Named& set : sets_of_folder(path)) sets.push_back(std::move(set));
    } else if (format) {
      sets.push_back({.path = path, .format = *format});
    } else {
      sets.push_back(set_of_files(path));
    }
  }
  if (const auto tokenizer = invocation.value("--tokenizer")) {
    for (Named& set : sets) set.tokenizer = *tokenizer;
  }
  return sets;
}

std::shared_ptr<const TokenSet> open(const Named& set) {
  const auto& entry = Registry<TokenSource>::instance().at(set.format);
  config::Node section = config::Node::map();
  config::Node files = config::Node::list();
  files.items.push_back(config::Node::string(set.path.string()));
  section.set("files", std::move(files));
  const bool marks_documents = set.format == "llmc" || set.format == "nanogpt";
  if (marks_documents && set.end_of_text) {
    section.set("end_of_text", config::Node::integer(*set.end_of_text));
  }
  if (set.format == "nanogpt" && set.bytes_per_token == 4) {
    section.set("dtype", config::Node::string("uint32"));
  }
  config::Diagnostics diagnostics;
  section = config::resolve(*entry.declaration(), std::move(section), diagnostics);
  diagnostics.throw_if_any();
  return entry.make(section)->open("SOURCE");
}

// What reading all of a set finds.
struct Found {
  int64_t documents = 0;
  int64_t largest = 0;
  int64_t negative = 0;
  std::string first_negative = {};  // Where it is, and what.
};

void count_negative(const TokenSet& set, int64_t begin, std::span<const int64_t> tokens,
                    Found& found) {
  const auto is_negative = [](int64_t token) { return token < 0; };
  const auto first = std::find_if(tokens.begin(), tokens.end(), is_negative);
  if (first == tokens.end()) return;
  if (found.negative == 0) {
    found.first_negative =
        fmt::format("{} is {}", set.place_of(begin + (first - tokens.begin())), *first);
  }
  found.negative += std::count_if(first, tokens.end(), is_negative);
}

Found read_all(const TokenSet& set, ByteProgress& progress) {
  Found found;
  std::vector<int64_t> tokens(kTokensAtATime);
  progress.begin(static_cast<uint64_t>(set.size()));
  for (int64_t place = 0; place < set.size(); place += kTokensAtATime) {
    const int64_t end = std::min(place + kTokensAtATime, set.size());
    const std::span part(tokens.data(), static_cast<size_t>(end - place));
    set.read(place, part);
    found.largest = std::max(found.largest, *std::max_element(part.begin(), part.end()));
    count_negative(set, place, part, found);
    found.documents += static_cast<int64_t>(set.document_begins(place, end).size());
    progress.done = static_cast<uint64_t>(end);
  }
  return found;
}

void print_document(const TokenSet& set, int64_t begin, const Tokenizer* tokenizer) {
  const int64_t count = std::min(kShownTokens, set.size() - begin);
  std::vector<int64_t> tokens(static_cast<size_t>(count));
  set.read(begin, tokens);
  if (tokenizer == nullptr) {
    fmt::print("  {}: {}\n", begin, fmt::join(tokens, " "));
    return;
  }
  const std::vector<int32_t> narrow(tokens.begin(), tokens.end());
  fmt::print("  {}: {}\n", begin, single_line(decode(*tokenizer, narrow)));
}

void print_first_documents(const TokenSet& set, const Tokenizer* tokenizer) {
  int64_t shown = 0;
  for (int64_t place = 0; place < set.size() && shown < kShownDocuments; place += kTokensAtATime) {
    const int64_t end = std::min(place + kTokensAtATime, set.size());
    for (const DocumentBegin& document : set.document_begins(place, end)) {
      if (shown++ < kShownDocuments) print_document(set, document.place, tokenizer);
    }
  }
}

// For a set in which no document can be seen to begin.
std::string why_no_documents(const Named& named, const Tokenizer* tokenizer) {
  const bool lacks_end = tokenizer != nullptr && !tokenizer->end_of_text();
  if (!named.has_documents() || lacks_end) {
    return "documents cannot be told apart: the tokenizer has no end-of-text token";
  }
  return "documents cannot be told apart: none of the tokens is the end-of-text token";
}

// What is wrong where the set was made with another tokenizer than it is shown with.
std::string problem_of_tokenizer(const Named& named, const Tokenizer& tokenizer) {
  return problem_of_tokens(named.path.parent_path(),
                           {"--tokenizer", named.tokenizer.value(), tokenizer});
}

// False where something is broken.
bool inspect(const Named& named) {
  std::optional<LoadedTokenizer> loaded;
  if (named.tokenizer) loaded = load_tokenizer("--tokenizer", *named.tokenizer);
  std::shared_ptr<const TokenSet> set;
  Found found;
  try {
    set = open(named);
    ByteProgress progress;
    Console console(STDERR_FILENO);
    with_progress(console, "reading " + named.path.filename().string(), progress,
                  [&] { found = read_all(*set, progress); });
  } catch (const std::runtime_error& error) {
    fmt::print("{}: broken: {}\n", named.path.string(), error.what());
    return false;
  }
  const Tokenizer* const tokenizer = loaded ? loaded->tokenizer.get() : nullptr;
  const bool has_documents = named.has_documents() && found.documents > 0;
  const std::string documents =
      has_documents ? " in " + counted(found.documents, "document") : std::string();
  fmt::print("{}: {}, {}{}, the largest is {}\n", named.path.string(), named.format,
             counted(set->size(), "token"), documents, found.largest);
  if (has_documents) {
    print_first_documents(*set, tokenizer);
  } else if (set->size() > 0) {
    fmt::print("{}\n", why_no_documents(named, tokenizer));
    print_document(*set, 0, tokenizer);
  }
  const bool is_beyond = tokenizer != nullptr && found.largest >= tokenizer->vocabulary_size();
  if (is_beyond) {
    fmt::print(
        "broken: the token {} is none of the tokenizer '{}', which has {}: name the tokenizer of "
        "these tokens by --tokenizer, or the format of the files by --format\n",
        found.largest, named.tokenizer->string(), tokenizer->vocabulary_size());
  }
  const std::string problem = tokenizer == nullptr ? "" : problem_of_tokenizer(named, *tokenizer);
  if (!problem.empty()) fmt::print("broken: {}\n", problem);
  if (found.negative > 0) {
    fmt::print("broken: {} of the tokens are negative; the first: {}\n", found.negative,
               found.first_negative);
  }
  const bool is_whole = !named.tokens || set->size() == *named.tokens;
  if (!is_whole) {
    fmt::print(
        "broken: tokens.json counts {} tokens: a file is missing, or is no part of the set\n",
        *named.tokens);
  }
  return !is_beyond && problem.empty() && found.negative == 0 && is_whole;
}

int run(const Invocation& invocation) {
  bool is_whole = true;
  for (const Named& named : named_by(invocation)) is_whole = inspect(named) && is_whole;
  return is_whole ? 0 : 1;
}

}  // namespace

Command data_inspect_command() {
  return {
      .name = "inspect",
      .summary = "what a set of tokens holds, and what is broken in it",
      .help =
          "Reads every token of the files that SOURCE names, a file, a folder or a glob pattern. "
          "Shows the format, the numbers of tokens (with those of end-of-text) and documents, the "
          "largest token, and the first documents, as text with a tokenizer. A folder that "
          "`tokenize` made names the format and the tokenizer of its files; for other files "
          "--format and --tokenizer do. Exits with 1 if "
          "something is broken.",
      .examples = {"data inspect tokens", "data inspect tokens/train_*.bin --tokenizer=gpt2"},
      .positionals = {{"SOURCE", Positional::Takes::path},
                      {"SOURCE", Positional::Takes::path, Positional::Count::any}},
      .flags = {{"--format",
                 "of the files; without it, what they look like",
                 Flag::Takes::listed,
                 {{"llmc"}, {"nanogpt"}, {"megatron"}, {"bytes"}}},
                {"--tokenizer", "a tokenizer's folder or one of its files; or bytes",
                 Flag::Takes::path}},
      .run = run,
  };
}

}  // namespace phalanx
