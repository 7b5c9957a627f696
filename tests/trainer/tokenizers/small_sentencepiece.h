// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sentencepiece_model.pb.h>

namespace phalanx {

/// A unigram model of SentencePiece: <unk> (0), <s> (1), </s> (2), the bytes (from 3), then "▁"
/// (259), a (260), "▁a" (261), "▁ab" (262). Tests change it.
sentencepiece::ModelProto small_model();

}  // namespace phalanx
