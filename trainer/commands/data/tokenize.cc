// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/tokenize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/cli/command.h"
#include "trainer/commands/counted.h"
#include "trainer/config/tree/scalar.h"
#include "trainer/data/data_files.h"
#include "trainer/data/text/learn_characters.h"
#include "trainer/data/text/require_text.h"
#include "trainer/host/cores.h"
#include "trainer/io/byte_progress.h"
#include "trainer/io/bytes_text.h"
#include "trainer/metrics/console.h"
#include "trainer/metrics/progress_line.h"
#include "trainer/tokenizers/load_tokenizer.h"
#include "trainer/tokenizers/unknown_token.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

double fraction_of(const Invocation& invocation) {
  const auto written = invocation.value("--val-fraction");
  if (!written) return 0;
  const auto parsed = config::parse_real(*written).value;
  if (parsed && *parsed >= 0 && *parsed < 1) return *parsed;
  throw UserError(
      fmt::format("option --val-fraction takes a number from 0 to below 1: '{}'", *written));
}

TokenFileFormat format_of(const Invocation& invocation) {
  const std::string name = invocation.value("--format").value_or("llmc");
  if (name == "nanogpt") return TokenFileFormat::nanogpt;
  return name == "megatron" ? TokenFileFormat::megatron : TokenFileFormat::llmc;
}

std::string field_of(const Invocation& invocation) {
  std::string field = invocation.value("--field").value_or("text");
  if (field.empty()) throw UserError("option --field is empty");
  return field;
}

DocumentUnit unit_of(const Invocation& invocation) {
  const std::string name = invocation.value("--document").value_or("file");
  if (name == "line") return DocumentUnit::line;
  return name == "paragraph" ? DocumentUnit::paragraph : DocumentUnit::file;
}

bool is_below(const fs::path& path, const fs::path& folder) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  return std::mismatch(folder.begin(), folder.end(), whole.begin(), whole.end()).first ==
         folder.end();
}

// `made` is the folder where the work goes on.
TokenizeOptions options_of(const Invocation& invocation, const fs::path& made) {
  TokenizeOptions options{
      .files = {},
      .unit = unit_of(invocation),
      .field = field_of(invocation),
      .format = format_of(invocation),
      .validation_fraction = fraction_of(invocation),
      .threads = invocation.count("--threads").value_or(usable_hardware_threads()),
      .needs_tokens = true,
  };
  options.file_tokens = invocation.count("--file-tokens").value_or(options.file_tokens);
  if (invocation.value("--on-error").value_or("stop") == "skip") {
    options.on_broken = OnBrokenDocument::skip;
  }
  options.any_bytes.are_allowed = invocation.has("--any-bytes");
  if (invocation.has("--restart")) options.earlier = EarlierWork::discard;
  for (const std::string& input : invocation.arguments) {
    FileList files = find_data_files("INPUT", input);
    std::vector<bool> is_text(files.size());
    // What an earlier try has written there is no text.
    for (size_t i = 0; i < files.size(); ++i) is_text[i] = !is_below(files[i], made);
    files.keep_if(is_text);
    options.files.add(files);
  }
  if (options.files.empty()) throw UserError("INPUT names no file");
  return options;
}

LoadedTokenizer tokenizer_of(const Invocation& invocation, const TokenizeOptions& options) {
  const std::string name = invocation.required("--tokenizer");
  if (name != "characters") return load_tokenizer("--tokenizer", name);
  require_texts(options.files, Packed::unpacked, options.any_bytes);
  return character_tokenizer(learn_characters(options.files, options.field, options.on_broken));
}

std::string documents(int64_t count) { return counted(count, "document"); }

void print_left_out(const std::map<std::string, int64_t>& by_cause) {
  int64_t all = 0;
  std::vector<std::string> causes;
  for (const auto& [cause, count] : by_cause) {
    all += count;
    causes.push_back(fmt::format("{} ({})", cause, count));
  }
  fmt::print("broken, left out: {}: {}\n", documents(all), fmt::join(causes, "; "));
}

// What an earlier start has read took no time of this one.
std::string speed_text(const ByteProgress& progress, double seconds) {
  const uint64_t bytes = progress.all - progress.done_before;
  return fmt::format(
      "{}{} in {:.1f} s, {}/s", bytes_text(bytes),
      progress.done_before == 0
          ? ""
          : fmt::format(" (of {}, behind the earlier start)", bytes_text(progress.all)),
      seconds, bytes_text(static_cast<uint64_t>(static_cast<double>(bytes) / seconds)));
}

// What lies in the files of one kind, as `data inspect` counts it: each document has a token of
// end-of-text.
void print_stored(const char* purpose, int64_t count, int64_t tokens, bool has_ends) {
  fmt::print("for {}: {}, {}{}\n", purpose, documents(count),
             counted(tokens + (has_ends ? count : 0), "token"),
             has_ends ? " with those of end-of-text" : "");
}

void print_unknown(const TokenizeSummary& summary, const LoadedTokenizer& tokenizer) {
  if (summary.unknown_tokens == 0) return;
  const auto all = static_cast<double>(summary.tokens);
  fmt::print("unknown to the tokenizer ({}): {} of the tokens, {:.2g}%\n",
             unknown_token(tokenizer).value().text, summary.unknown_tokens,
             100 * static_cast<double>(summary.unknown_tokens) / all);
}

void print_summary(const TokenizeSummary& summary, const LoadedTokenizer& tokenizer,
                   const fs::path& destination) {
  const bool has_ends = tokenizer.tokenizer->end_of_text().has_value();
  const auto per_token = static_cast<double>(summary.characters) /
                         static_cast<double>(std::max<int64_t>(summary.tokens, 1));
  fmt::print("{}: {}, {}, {:.2f} characters a token; the longest document has {}\n",
             destination.string(), documents(summary.documents), counted(summary.tokens, "token"),
             per_token, counted(summary.longest, "token"));
  print_unknown(summary, tokenizer);
  if (has_ends || summary.validation_documents > 0) {
    print_stored("training", summary.documents - summary.validation_documents,
                 summary.tokens - summary.validation_tokens, has_ends);
  }
  if (summary.validation_documents > 0) {
    print_stored("validation", summary.validation_documents, summary.validation_tokens, has_ends);
  }
  if (summary.empty_documents > 0) {
    fmt::print("without text, left out: {}\n", documents(summary.empty_documents));
  }
  if (summary.broken_characters > 0) {
    fmt::print("with bytes that are no UTF-8 (U+FFFD, or as they are where bytes are tokens): {}\n",
               documents(summary.broken_characters));
  }
  if (summary.plain_json_files > 0) {
    fmt::print("{}\n", about_plain_json(summary.plain_json_files));
  }
  if (!summary.left_out.empty()) print_left_out(summary.left_out);
}

int run(const Invocation& invocation) {
  const fs::path destination = invocation.required("--output");
  TokenizeOptions options = options_of(invocation, work_folder(destination));
  const LoadedTokenizer tokenizer = tokenizer_of(invocation, options);
  Console console(STDERR_FILENO);
  options.say = [&](const std::string& line) { console.line(line); };
  ByteProgress progress;
  TokenizeSummary summary;
  const auto start = std::chrono::steady_clock::now();
  with_progress(console, "tokenizing", progress,
                [&] { summary = tokenize(tokenizer, options, destination, progress); });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  print_summary(summary, tokenizer, destination);
  fmt::print("{}\n", speed_text(progress, seconds.count()));
  return 0;
}

}  // namespace

Command tokenize_command() {
  return {
      .name = "tokenize",
      .summary = "make files of tokens from texts",
      .help =
          "Reads texts, plain, JSONL or a JSON array of objects (.json), also packed as .gz or "
          ".zst, "
          "and writes their tokens into the new folder that --output names: train_000000.bin and "
          "so on, val_000000.bin and so "
          "on, "
          "the tokenizer's files in tokenizer/, and tokens.json, which says what they are. An "
          "INPUT "
          "is a file, a folder (with all files below it) or a glob pattern. Between documents "
          "stands "
          "the tokenizer's end-of-text token, if it has one. Killed and started again, it goes on "
          "where it was: its work lies in PATH.part until it is whole. Work of other inputs or "
          "options is not overwritten without --restart.",
      .examples = {"tokenize corpus/*.jsonl.zst --tokenizer=gpt2 --output=tokens",
                   "tokenize book.txt --tokenizer=characters --output=tokens --document=paragraph "
                   "--val-fraction=0.1"},
      .positionals = {{"INPUT", Positional::Takes::path},
                      {"INPUT", Positional::Takes::path, Positional::Count::any}},
      .flags =
          {{.name = "--tokenizer",
            .summary = "a tokenizer's folder or one of its files: tokenizer.json, any .model of "
                       "SentencePiece, encoder.json with vocab.bpe, vocab.json with merges.txt, "
                       "characters.txt; or bytes, or characters: those of the texts",
            .takes = Flag::Takes::path,
            .is_required = true},
           {.name = "--output",
            .summary = "the new folder",
            .takes = Flag::Takes::path,
            .is_required = true},
           {"--format",
            "of the files; llmc without it",
            Flag::Takes::listed,
            {{"llmc", "llm.c's, end-of-text before each document"},
             {"nanogpt", "nothing but tokens, end-of-text behind each document"},
             {"megatron", "Megatron's .bin and .idx, end-of-text behind each document"}}},
           {"--val-fraction", "share of the documents for validation; 0 without it",
            Flag::Takes::text},
           {"--document",
            "what a document is in plain text; file without it",
            Flag::Takes::listed,
            {{"file"}, {"line"}, {"paragraph"}}},
           {"--field", "of JSON objects, the one with the text; text without it",
            Flag::Takes::text},
           {"--on-error",
            "what becomes of a document that cannot be read or encoded; stop without it",
            Flag::Takes::listed,
            {{"stop", "it ends the command"}, {"skip", "it is left out, and counted by cause"}}},
           {"--any-bytes",
            "read files that are no text (Parquet, weights, another encoding) as they are"},
           {"--restart",
            "throw away the unfinished work in PATH.part beside --output, and begin anew"},
           {"--file-tokens", "in each file; 100000000 without it", Flag::Takes::count},
           {"--threads", "that encode; without it as many as there are cores", Flag::Takes::count}},
      .run = run,
  };
}

}  // namespace phalanx
