// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "trainer/generation/generation_config.h"

namespace phalanx {

/// A way to go on: the text of a beam with one more token.
struct Continuation {
  double log_probability = 0;  ///< The whole text's.
  int64_t beam = 0;
  int32_t token = 0;
};

/// The beam search for one text, without the model: as transformers' _beam_search, but every text
/// by itself. A beam is a text; the likeliest num_beams go on.
class BeamSearch {
 public:
  /// Says whether a text, its last token included, is finished.
  using IsFinished = std::function<bool(std::span<const int32_t> text)>;

  BeamSearch(const GenerationConfig& config, IsFinished is_finished);

  /// The beams that go on, the best first. In the beginning one, without a token.
  struct Beam {
    std::vector<int32_t> tokens;
    double log_probability = 0;
    int64_t parent = 0;  ///< Which of the beams before it goes on from.
  };
  const std::vector<Beam>& beams() const { return running_; }

  /// Takes a step. `continuations` are the likeliest of all beams, the best first: 2 * num_beams or
  /// more, or all that there are.
  void advance(std::span<const Continuation> continuations);

  /// Whether no beam can come to a better end than those that are finished.
  bool is_done() const { return is_done_; }

  /// The best finished text; the best beam if none is finished.
  const std::vector<int32_t>& best() const;

 private:
  struct Finished {
    std::vector<int32_t> tokens;
    double score = 0;
  };

  bool is_full() const;
  void finish(std::vector<int32_t> tokens, double log_probability);
  double score_of(double log_probability, size_t length) const;

  const GenerationConfig config_;
  const IsFinished is_finished_;
  const size_t width_;
  std::vector<Beam> running_;
  std::vector<Finished> finished_;  // The best first, width_ at most.
  bool is_done_ = false;
};

}  // namespace phalanx
