// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/pairs/text_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trainer/api/broken_sample.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/data/data_files.h"
#include "trainer/data/held_back.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const JsonLines> open_lines(const std::string& field,
                                            const std::vector<fs::path>& paths) {
  FileList files;
  for (const fs::path& path : paths) files.add(find_data_files(field, path));
  return std::make_shared<JsonLines>(field, files);
}

std::optional<std::string> mistake_in(const std::string& field, const std::string& text) {
  try {
    const TextTemplate parsed(text);
    return std::nullopt;
  } catch (const UserError& e) {
    return fmt::format("{}: {}", field, e.what());
  }
}

}  // namespace

void PairsConfig::describe(config::Schema<PairsConfig>& s) {
  s.field("files", &PairsConfig::files,
          "JSONL, one pair a line, also packed (.gz, .zst): files, folders (with all files below "
          "them), glob patterns")
      .mandatory()
      .resume_may_change();  // The data's fingerprint guards their content.
  s.field("validation_files", &PairsConfig::validation_files,
          "the pairs for validation, as files; none: the last ones of files")
      .resume_may_change();
  s.field("validation_fraction", &PairsConfig::validation_fraction,
          "share of the pairs, the last ones, kept for validation if there are no others for it; "
          "0: no validation")
      .at_least(0)
      .less_than(1);
  s.field("validation_limit", &PairsConfig::validation_limit,
          "no more than this is kept by validation_fraction; null: no limit")
      .count()
      .at_least(1)
      .unit("pairs")
      .older_runs_have_none();
  s.field("input", &PairsConfig::input,
          "what the model reads: a text with places for fields of the line, \"summarize: "
          "{document}\"; two braces stand for one that is text")
      .mandatory();
  s.field("target", &PairsConfig::target, "what it learns to write, as input: \"{summary}\"")
      .mandatory();
  s.field("special_tokens", &PairsConfig::special_tokens,
          "whether the text of a special token (<|eot_id|>, say), in the templates or in a field, "
          "is that token; otherwise it is text like any other");
  s.field("too_long", &PairsConfig::too_long,
          "what becomes of a pair with more tokens than a sample takes: those beyond are cut off, "
          "or it counts as a broken sample (loader.max_broken)")
      .choices({{"cut", TooLong::cut}, {"broken", TooLong::broken}});
  s.ineffective({"validation_fraction", "validation_limit"}, "the validation files are given",
                [](const PairsConfig& c) { return !c.validation_files.empty(); });
  s.ineffective({"validation_limit"}, "validation_fraction is 0",
                [](const PairsConfig& c) { return c.validation_fraction == 0; });
  s.check([](const PairsConfig& c) -> std::optional<std::string> {
    if (c.files.empty()) return "files: name at least one";
    if (auto mistake = mistake_in("input", c.input)) return mistake;
    return mistake_in("target", c.target);
  });
}

TextPairs::TextPairs(std::shared_ptr<const JsonLines> lines, int64_t begin, int64_t end,
                     const PairsConfig& config, std::shared_ptr<const Tokenizer> tokenizer)
    : lines_(std::move(lines)),
      begin_(begin),
      end_(end),
      input_(config.input),
      target_(config.target),
      special_(config.special_tokens ? SpecialText::token : SpecialText::ordinary),
      too_long_(config.too_long),
      tokenizer_(std::move(tokenizer)) {}

TokenPair TextPairs::tokens(int64_t index) const {
  const nlohmann::json object = lines_->object(begin_ + index);
  try {
    return {.input = encode(*tokenizer_, input_.fill(object), special_),
            .target = encode(*tokenizer_, target_.fill(object), special_)};
  } catch (const UserError& e) {
    fail(index, "a line without the fields of a pair", fmt::format("the line {}", e.what()));
  }
}

bool TextPairs::shorten(int64_t index, const char* what, int64_t limit,
                        std::vector<int32_t>& tokens) const {
  if (std::ssize(tokens) <= limit) return false;
  if (too_long_ == TooLong::broken) {
    fail(index, "a pair that is too long",
         fmt::format("the {} has {} tokens, and {} fit (task.data.pairs.too_long is broken: set it "
                     "to cut, or raise the length)",
                     what, tokens.size(), limit));
  }
  tokens.resize(static_cast<size_t>(limit));
  return true;
}

void TextPairs::fail(int64_t index, const std::string& kind, const std::string& problem) const {
  throw BrokenSampleError(
      {.source = lines_->file_of(begin_ + index),
       .kind = kind,
       .message = fmt::format("{}: {}", lines_->place_of(begin_ + index), problem)});
}

std::string TextPairs::fingerprint() const {
  return fmt::format("pairs-{}-{}-{}", lines_->fingerprint(), begin_, end_);
}

PhasePairs open_pairs(const PairsConfig& config, Phase phase,
                      std::shared_ptr<const Tokenizer> tokenizer) {
  const bool training = phase == Phase::train;
  const bool has_own = !config.validation_files.empty();
  const HeldBack rule{.fraction = has_own ? 0.0 : config.validation_fraction,
                      .limit = config.validation_limit};
  if (!training && !has_own && rule.fraction == 0) return {};
  auto lines = !training && has_own
                   ? open_lines("task.data.pairs.validation_files", config.validation_files)
                   : open_lines("task.data.pairs.files", config.files);
  int64_t begin = 0;
  int64_t end = lines->size();
  HeldBackSum sum;
  sum.add(rule, end);
  const int64_t split = end - rule.of(end);
  if (training) {
    end = split;
  } else if (!has_own) {
    begin = split;
  }
  if (begin == end) {
    throw UserError(
        fmt::format("task.data.pairs.files: validation_fraction ({}) of {} pairs is none: raise "
                    "it, set it to 0, "
                    "or name validation_files",
                    rule.fraction, end));
  }
  return {std::make_shared<TextPairs>(std::move(lines), begin, end, config, std::move(tokenizer)),
          sum.text("pairs", "task.data.pairs.validation_limit")};
}

PairsConfig with_validation_files(PairsConfig config, const std::vector<fs::path>& files) {
  if (!files.empty()) config.validation_files = files;
  return config;
}

}  // namespace phalanx
