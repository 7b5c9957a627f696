// SPDX-License-Identifier: Apache-2.0
#include "tasks/sequence_to_sequence/input_sequences.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/data/padded_rows.h"
#include "trainer/data/sequence_pair_batch.h"

namespace phalanx {

InputSequences::InputSequences(const std::vector<std::filesystem::path>& files,
                               TaskTokenizer tokenizer, Options options)
    : lines_(files),
      tokenizer_(std::move(tokenizer)),
      options_(std::move(options)),
      template_(options_.pairs ? options_.pairs->input : "{text}") {}

std::string InputSequences::text_of(int64_t index) const {
  if (!lines_.is_json(index)) return lines_.text(index);
  const nlohmann::json object = lines_.object(index);
  try {
    return template_.fill(object);
  } catch (const UserError& e) {
    lines_.fail(index, "a line without the fields of an input",
                fmt::format("the line {}", e.what()));
  }
}

std::vector<int64_t> InputSequences::tokens_of(int64_t index) const {
  const bool takes_special = options_.pairs && options_.pairs->special_tokens;
  const auto special = takes_special ? SpecialText::token : SpecialText::ordinary;
  const std::vector<int32_t> tokens = encode(*tokenizer_.tokenizer, text_of(index), special);
  std::vector<int64_t> row(tokens.begin(), tokens.end());
  const auto most = static_cast<size_t>(options_.input_length - 1);
  if (row.size() > most) {
    if (options_.pairs && options_.pairs->too_long == TooLong::broken) {
      lines_.fail(index, "an input that is too long",
                  fmt::format("the input has {} tokens, and {} fit (task.data.pairs.too_long is "
                              "broken: set it to cut, or raise task.data.input_length)",
                              row.size(), most));
    }
    row.resize(most);
  }
  row.push_back(tokenizer_.end_of_text);
  return row;
}

std::unique_ptr<Batch> InputSequences::batch(std::span<const int64_t> indices) const {
  std::vector<std::vector<int64_t>> rows;
  for (const int64_t index : indices) rows.push_back(tokens_of(index));
  auto batch = std::make_unique<SequencePairBatch>();
  batch->samples = std::ssize(indices);
  batch->tokens = batch->samples;
  batch->inputs = padded_rows(rows, 0);
  batch->mask = mask_of_rows(rows);
  batch->numbers.assign(indices.begin(), indices.end());
  // None are known.
  batch->targets =
      padded_rows(std::vector<std::vector<int64_t>>(rows.size(), {kNoTarget}), kNoTarget);
  return batch;
}

}  // namespace phalanx
