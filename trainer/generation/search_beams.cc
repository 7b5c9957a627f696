// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/topk.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "trainer/generation/beam_search.h"
#include "trainer/generation/search.h"
#include "trainer/generation/token_chooser.h"

namespace phalanx {
namespace {

/// Searches for the texts of a batch side by side; one that is found leaves it. The rows of the
/// writer are the beams of all texts that are left, one text after the other.
class BeamsOfTexts {
 public:
  BeamsOfTexts(Writer& writer, const std::vector<SearchedText>& texts, const SearchRequest& request)
      : writer_(writer), request_(request), texts_(texts), results_(texts.size()) {
    const auto is_finished = [this](std::span<const int32_t> text) {
      return ends_text(request_, text.back()) || is_stopped(text) || is_long(text);
    };
    for (size_t i = 0; i < texts.size(); ++i) {
      searches_.push_back({.text = i, .search = BeamSearch(request.config, is_finished)});
    }
  }

  std::vector<Generated> run() {
    at::Tensor tokens = take(writer_.begin());
    while (any_rank(request_, !searches_.empty())) {
      if (searches_.empty()) {
        writer_.idle();
      } else {
        tokens = take(writer_.next(tokens));
      }
    }
    return std::move(results_);
  }

 private:
  struct Search {
    size_t text;
    BeamSearch search;
  };

  bool is_stopped(std::span<const int32_t> text) const {
    return request_.hooks.is_stopped && request_.hooks.is_stopped(text);
  }

  bool is_long(std::span<const int32_t> text) const {
    return std::ssize(text) == request_.config.max_new_tokens;
  }

  // Takes a token for each beam by the logits of all; returns those of the beams that go on.
  at::Tensor take(const at::Tensor& logits) {
    const at::Tensor log_probabilities =
        known_of(logits.to(at::kCPU, at::kDouble).log_softmax(-1), request_);
    require_finite(log_probabilities);
    const bool stops = is_interrupted(request_);
    std::vector<int64_t> rows;
    std::vector<int64_t> tokens;
    std::vector<Search> left;
    int64_t first = 0;  // The row of the text's first beam.
    for (Search& search : searches_) {
      const auto beams = std::ssize(search.search.beams());
      if (!stops) {
        search.search.advance(likeliest(search, log_probabilities.narrow(0, first, beams)));
      }
      if (stops || search.search.is_done()) {
        results_[search.text] = result_of(search.search, stops);
      } else {
        for (const auto& beam : search.search.beams()) {
          rows.push_back(first + beam.parent);
          tokens.push_back(beam.tokens.back());
        }
        left.push_back(std::move(search));
      }
      first += beams;
    }
    searches_ = std::move(left);
    if (!searches_.empty()) writer_.select(tensor_of(rows));
    return tensor_of(tokens);
  }

  // The best ways to go on of a text's beams, whose log-probabilities are [beams, vocabulary].
  std::vector<Continuation> likeliest(const Search& search, const at::Tensor& log_probabilities) {
    const auto& beams = search.search.beams();
    std::vector<at::Tensor> sums;
    for (size_t i = 0; i < beams.size(); ++i) {
      sums.push_back(
          penalized_of(search.text, beams[i], log_probabilities[static_cast<int64_t>(i)]) +
          beams[i].log_probability);
    }
    const at::Tensor all = at::stack(sums).flatten();
    // Enough that num_beams are left to go on, should the best all end their text.
    const auto endings = std::max<int64_t>(1, std::ssize(request_.end_of_text));
    const int64_t count = std::min(all.numel(), (1 + endings) * request_.config.num_beams);
    const auto [values, places] = at::topk(all, count);
    std::vector<Continuation> found;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t place = places.const_data_ptr<int64_t>()[i];
      const double log_probability = values.const_data_ptr<double>()[i];
      if (std::isinf(log_probability)) break;  // Tokens that are forbidden.
      found.push_back({.log_probability = log_probability,
                       .beam = place / log_probabilities.size(1),
                       .token = static_cast<int32_t>(place % log_probabilities.size(1))});
    }
    return found;
  }

  at::Tensor penalized_of(size_t text, const BeamSearch::Beam& beam, const at::Tensor& logs) const {
    if (request_.config.repetition_penalty == 1) return logs;
    std::vector<int32_t> seen = texts_[text].seen;
    seen.insert(seen.end(), beam.tokens.begin(), beam.tokens.end());
    return penalized(logs, seen, request_.config.repetition_penalty);
  }

  Generated result_of(const BeamSearch& search, bool stops) const {
    Generated result{.tokens = search.best()};
    if (!result.tokens.empty() && ends_text(request_, result.tokens.back())) {
      result.tokens.pop_back();
      result.reason = FinishReason::eos;
    } else if (is_stopped(result.tokens)) {
      result.reason = FinishReason::stop;
    } else if (stops && !is_long(result.tokens)) {
      result.reason = FinishReason::interrupted;
    }
    return result;
  }

  Writer& writer_;
  const SearchRequest& request_;
  const std::vector<SearchedText>& texts_;
  std::vector<Search> searches_;
  std::vector<Generated> results_;
};

}  // namespace

std::vector<Generated> search_beams(Writer& writer, const std::vector<SearchedText>& texts,
                                    const SearchRequest& request) {
  return BeamsOfTexts(writer, texts, request).run();
}

}  // namespace phalanx
