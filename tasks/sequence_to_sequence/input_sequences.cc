// SPDX-License-Identifier: Apache-2.0
#include "tasks/sequence_to_sequence/input_sequences.h"

#include <iterator>
#include <vector>

#include "trainer/data/padded_rows.h"
#include "trainer/data/sequence_pair_batch.h"

namespace phalanx {

std::unique_ptr<Batch> InputSequences::batch(std::span<const int64_t> indices) const {
  std::vector<std::vector<int64_t>> rows;
  for (const int64_t index : indices) {
    const std::vector<int32_t> tokens =
        texts_.tokens(index, options_.input_length - 1, "task.data.input_length");
    rows.emplace_back(tokens.begin(), tokens.end()).push_back(options_.end_of_text);
  }
  auto batch = std::make_unique<SequencePairBatch>();
  batch->samples = std::ssize(indices);
  batch->tokens = batch->samples;
  batch->inputs = padded_rows(rows, 0);
  batch->mask = mask_of_rows(rows);
  // None are known.
  batch->targets =
      padded_rows(std::vector<std::vector<int64_t>>(rows.size(), {kNoTarget}), kNoTarget);
  return batch;
}

}  // namespace phalanx
