// SPDX-License-Identifier: Apache-2.0
#include "trainer/generation/beam_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace phalanx {

BeamSearch::BeamSearch(const GenerationConfig& config, IsFinished is_finished)
    : config_(config),
      is_finished_(std::move(is_finished)),
      width_(static_cast<size_t>(config.num_beams)),
      running_(1) {}

bool BeamSearch::is_full() const { return finished_.size() == width_; }

double BeamSearch::score_of(double log_probability, size_t length) const {
  return log_probability / std::pow(static_cast<double>(length), config_.length_penalty);
}

void BeamSearch::finish(std::vector<int32_t> tokens, double log_probability) {
  const double score = score_of(log_probability, tokens.size());
  const auto worse = std::find_if(finished_.begin(), finished_.end(),
                                  [&](const Finished& other) { return other.score < score; });
  finished_.insert(worse, {.tokens = std::move(tokens), .score = score});
  if (finished_.size() > width_) finished_.pop_back();
}

void BeamSearch::advance(std::span<const Continuation> continuations) {
  const bool takes_more = !(config_.early_stopping && is_full());
  std::vector<Beam> next;
  size_t rank = 0;
  for (const Continuation& continuation : continuations) {
    std::vector<int32_t> tokens = running_[static_cast<size_t>(continuation.beam)].tokens;
    tokens.push_back(continuation.token);
    const bool is_among_best = rank++ < width_;  // The others are there to go on from.
    if (is_finished_(tokens)) {
      if (is_among_best && takes_more) finish(std::move(tokens), continuation.log_probability);
    } else if (next.size() < width_) {
      next.push_back({.tokens = std::move(tokens),
                      .log_probability = continuation.log_probability,
                      .parent = continuation.beam});
    }
  }
  if (next.empty()) {
    is_done_ = true;
    return;
  }
  running_ = std::move(next);
  if (!is_full()) return;
  const Beam& best = running_.front();
  const bool can_improve =
      score_of(best.log_probability, best.tokens.size()) > finished_.back().score;
  is_done_ = config_.early_stopping || !can_improve;
}

const std::vector<int32_t>& BeamSearch::best() const {
  return finished_.empty() ? running_.front().tokens : finished_.front().tokens;
}

}  // namespace phalanx
