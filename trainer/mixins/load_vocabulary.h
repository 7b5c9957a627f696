// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>

#include "trainer/checkpoint/load/load.h"
#include "trainer/checkpoint/load/vocabulary_rows.h"
#include "trainer/config/tree/node.h"
#include "trainer/mixins/checkpoint_config.h"

namespace phalanx {

class Tokenizer;

/// The tensors of the model that a resolved section describes whose rows are the tokens of its
/// vocabulary, and how many rows these have.
struct VocabularyTensors {
  std::set<std::string> names;
  int64_t rows = 0;
};

/// Throws UserError for a model whose config has no vocab_size, and one without such tensors.
VocabularyTensors vocabulary_tensors(const config::Node& model);

/// Which rows of the source, under our names, the rows of this model take, as
/// `checkpoint.load_vocabulary` says; nothing where it is null. `tokenizer` is this run's, or
/// nullptr. Throws UserError for a source without such tensors, and without a tokenizer where
/// tokens are to be compared.
std::optional<VocabularyRows> rows_of_source(const CheckpointConfig& config,
                                             const config::Node& model, const Checkpoint& named,
                                             const Tokenizer* tokenizer);

}  // namespace phalanx
