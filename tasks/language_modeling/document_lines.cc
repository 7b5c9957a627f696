// SPDX-License-Identifier: Apache-2.0
#include "tasks/language_modeling/document_lines.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "trainer/data/padded_rows.h"
#include "trainer/data/text/json_line.h"
#include "trainer/data/token_batch.h"

namespace phalanx {

DocumentLines::DocumentLines(const std::vector<std::filesystem::path>& files,
                             std::shared_ptr<const Tokenizer> tokenizer, const Options& options)
    : lines_(files, options.any_bytes), tokenizer_(std::move(tokenizer)), options_(options) {}

std::string DocumentLines::text_of(int64_t index) const {
  if (!lines_.is_json(index)) return lines_.text(index);
  const nlohmann::json object = lines_.object(index);
  const auto field = object.find(options_.field);
  if (field != object.end() && field->is_string()) return field->get<std::string>();
  if (field != object.end()) {
    lines_.fail(index, "a line without the text", "the line " + no_text_in(options_.field, *field));
  }
  lines_.fail(index, "a line without the text",
              fmt::format("the line has no field '{}' that is a text", options_.field));
}

std::vector<int32_t> DocumentLines::tokens_of(int64_t index) const {
  std::vector<int32_t> tokens = encode(*tokenizer_, text_of(index));
  if (tokens.size() < 2) {
    lines_.fail(index, "a document without a second token",
                "the document has no second token, so there is nothing to predict");
  }
  if (std::ssize(tokens) > options_.context_length + 1) {
    lines_.fail(index, "a document that is too long",
                fmt::format("the document has {} tokens, and the model predicts at most {}: cut it",
                            tokens.size(), options_.context_length));
  }
  return tokens;
}

std::unique_ptr<Batch> DocumentLines::batch(std::span<const int64_t> indices) const {
  std::vector<std::vector<int64_t>> inputs;
  std::vector<std::vector<int64_t>> targets;
  auto batch = std::make_unique<TokenBatch>();
  for (const int64_t index : indices) {
    const std::vector<int32_t> tokens = tokens_of(index);
    inputs.emplace_back(tokens.begin(), tokens.end() - 1);
    targets.emplace_back(tokens.begin() + 1, tokens.end());
    batch->tokens += std::ssize(targets.back());
  }
  batch->samples = std::ssize(indices);
  batch->inputs = padded_rows(inputs, 0);
  batch->targets = padded_rows(targets, kNoTarget);
  return batch;
}

}  // namespace phalanx
