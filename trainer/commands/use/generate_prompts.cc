// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/use/generate_prompts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/data/text/document_reader.h"
#include "trainer/data/text/json_line.h"
#include "trainer/data/text/require_text.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr const char* kText = "prompt";
constexpr const char* kTokens = "prompt_token_ids";

std::vector<int32_t> tokens_of(const nlohmann::json& ids, const std::string& place) {
  std::vector<int32_t> tokens;
  const bool is_list = ids.is_array();
  for (const auto& id : is_list ? ids : nlohmann::json::array()) {
    if (!id.is_number_integer() || id < 0 || id > INT32_MAX) break;
    tokens.push_back(id.get<int32_t>());
  }
  if (is_list && tokens.size() == ids.size()) return tokens;
  throw UserError(fmt::format("{}: its '{}' is no list of tokens", place, kTokens));
}

Prompt prompt_of_line(const std::string& line, std::string place) {
  Prompt prompt{.place = std::move(place)};
  JsonLine read;
  try {
    read = read_json_line(line);
  } catch (const UserError& e) {
    throw UserError(fmt::format("{}: the line {}", prompt.place, e.what()));
  }
  // With its fields in their order; a line that had to be repaired has them by name.
  prompt.line = nlohmann::ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (prompt.line.is_discarded()) {
    prompt.line = nlohmann::ordered_json::parse(read.object.dump());
  }
  const auto text = read.object.find(kText);
  const auto tokens = read.object.find(kTokens);
  prompt.is_text = tokens == read.object.end();
  if (!prompt.is_text) {
    prompt.tokens = tokens_of(*tokens, prompt.place);
  } else if (text != read.object.end() && text->is_string()) {
    prompt.text = text->get<std::string>();
  } else {
    throw UserError(fmt::format("{}: the line has neither '{}', a text, nor '{}', a list of tokens",
                                prompt.place, kText, kTokens));
  }
  return prompt;
}

std::string read_whole(const fs::path& path) {
  const std::unique_ptr<TextStream> stream = open_text(path);
  std::string text;
  std::vector<char> buffer(1 << 16);
  while (const size_t read = stream->read(buffer)) text.append(buffer.data(), read);
  return text;
}

// Empty lines are none, but count for the numbers in messages.
PromptList read_json_lines(const fs::path& path) {
  PromptList prompts{.are_json_lines = true};
  const std::string text = read_whole(path);
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    prompts.all.push_back(
        prompt_of_line(line, fmt::format("'{}', line {}", path.string(), number)));
  }
  if (prompts.all.empty()) {
    throw UserError(fmt::format("'{}' has no prompts: no line of it has text", path.string()));
  }
  return prompts;
}

// Without the line end that a shell puts behind a text.
std::string read_standard_input() {
  if (isatty(STDIN_FILENO) == 1) {
    throw UserError("no prompt: give --prompt=TEXT or --input=FILE, or the text on standard input");
  }
  std::string text{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

PromptList one_prompt(std::string place, std::string text) {
  PromptList prompts;
  prompts.all.push_back({.place = std::move(place), .text = std::move(text)});
  return prompts;
}

void require_known(const Prompt& prompt, const Tokenizer* tokenizer, int64_t vocabulary_size) {
  for (const int32_t token : prompt.tokens) {
    if (token < vocabulary_size) continue;
    const std::string what =
        fmt::format("{}: the token {} is not in the model's vocabulary of {} (model.vocab_size)",
                    prompt.place, token, vocabulary_size);
    if (!prompt.is_text || tokenizer == nullptr) throw UserError(what);
    throw UserError(fmt::format(
        "{}: the tokenizer that reads the prompt has {} tokens: name the one that the model was "
        "trained with by --tokenizer",
        what, tokenizer->vocabulary_size()));
  }
}

}  // namespace

PromptList read_prompts(const Invocation& invocation) {
  const auto text = invocation.value("--prompt");
  const auto file = invocation.value("--input");
  if (text && file) throw UserError("--prompt and --input both name the prompts: drop one");
  if (text) return one_prompt("--prompt", *text);
  if (!file) return one_prompt("standard input", read_standard_input());
  std::error_code error;
  if (!fs::is_regular_file(*file, error)) {
    throw UserError(fmt::format("--input: there is no file '{}'", *file));
  }
  if (is_json_lines(*file)) return read_json_lines(*file);
  std::string whole = read_whole(*file);
  require_text(*file, whole, {.are_allowed = false, .allowed_by = "standard input"});
  return one_prompt(fmt::format("'{}'", *file), std::move(whole));
}

void encode_prompts(PromptList& prompts, const Tokenizer* tokenizer, int64_t vocabulary_size,
                    const PromptFrame& frame) {
  for (Prompt& prompt : prompts.all) {
    if (!prompt.text.empty()) {
      if (tokenizer == nullptr) {
        throw UserError(
            fmt::format("{} is a text, and the model has no tokenizer: name one by --tokenizer, or "
                        "give '{}' in JSONL",
                        prompt.place, kTokens));
      }
      prompt.tokens = encode(*tokenizer, prompt.text);
    }
    if (prompt.is_text && frame.end) prompt.tokens.push_back(static_cast<int32_t>(*frame.end));
    if (prompt.tokens.empty() && frame.start) {
      prompt.tokens.push_back(static_cast<int32_t>(*frame.start));
    }
    if (prompt.tokens.empty()) {
      prompt.problem = "it has no tokens, and the model names none that begins a text";
      if (prompts.are_json_lines) continue;
      throw UserError(
          fmt::format("{}: {}: give a text to go on from", prompt.place, prompt.problem));
    }
    require_known(prompt, tokenizer, vocabulary_size);
  }
}

std::string prompts_by_number(const std::vector<int64_t>& places) {
  std::vector<std::string> ranges;
  for (size_t i = 0; i < places.size();) {
    size_t last = i;
    while (last + 1 < places.size() && places[last + 1] == places[last] + 1) ++last;
    ranges.push_back(last == i ? fmt::format("{}", places[i])
                               : fmt::format("{}-{}", places[i], places[last]));
    i = last + 1;
  }
  return fmt::format("prompt{} {}", places.size() == 1 ? "" : "s", fmt::join(ranges, ", "));
}

}  // namespace phalanx
