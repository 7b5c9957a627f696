// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "trainer/api/task_model.h"
#include "trainer/generation/generate_texts.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

/// Texts that all ranks write together.
struct RankedTexts {
  std::span<const GenerationInput> inputs;  ///< The same on all ranks.
  int64_t batch_size = 1;                   ///< Inputs that one rank writes for at a time.
  /// On rank 0: a part of the first input's text, while rank 0 writes it.
  std::function<void(std::string_view part)> on_first_text = {};
  /// On rank 0: each text that it writes now has one more token.
  std::function<void()> on_token = {};
  /// On rank 0: the next texts, in the order of the inputs.
  std::function<void(std::span<const GeneratedText> texts)> take;
};

/// Deals batches of inputs to the ranks, which write them side by side, and step together where the
/// model is wrapped: it may lie on all of them. Every rank calls it, with a model that may be used
/// (TaskModel::use). Ends early, on all ranks, once a signal to stop has come to one of them.
void generate_in_ranks(const TextModel& model, const GenerationConfig& config, const Ranks& ranks,
                       const RankedTexts& texts);

}  // namespace phalanx
