// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "trainer/api/sharded_tensor_view.h"
#include "trainer/checkpoint/format/contents.h"
#include "trainer/checkpoint/load/slice_reader.h"

namespace phalanx {

/// Tensors whose rows stand for the tokens of a vocabulary, and which row of another vocabulary
/// each of them takes.
struct VocabularyRows {
  std::set<std::string> tensors;  ///< Their names: an embedding, a head.
  int64_t there = 0;              ///< Rows of the other vocabulary.
  /// By row here: the row there, or -1: it stays as it was initialised.
  std::vector<int64_t> source;

  /// "rows of the vocabulary: 250 taken, 6 new and initialised, 12 left there".
  std::string text() const;
};

/// Takes rows of the same number.
std::vector<int64_t> rows_by_id(int64_t here, int64_t there);

/// The contents with as many rows as there are here in these tensors: to compare everything else.
/// They must not be read by it.
Contents with_rows(const Contents& contents, const std::set<std::string>& tensors, int64_t here);

/// Fills the rows that this rank holds of such a tensor, or of parts of rows.
void read_rows(SliceReader& reader, const ManifestTensor& tensor, const VocabularyRows& rows,
               const ShardedTensorView& view);

}  // namespace phalanx
