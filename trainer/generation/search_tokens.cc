// SPDX-License-Identifier: Apache-2.0
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/argmax.h>

#include <iterator>
#include <utility>

#include "trainer/generation/search.h"
#include "trainer/generation/token_chooser.h"

namespace phalanx {
namespace {

// A text that is being written.
struct Row {
  size_t text;  // Its place among the results.
  std::vector<int32_t> seen;
  at::Generator generator;
};

/// Writes a batch token by token; a text that has ended leaves it.
class TokenSearch {
 public:
  TokenSearch(Writer& writer, std::vector<SearchedText> texts, const SearchRequest& request)
      : writer_(writer), request_(request), results_(texts.size()) {
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto number = static_cast<uint64_t>(texts[i].number);
      const uint64_t seed = static_cast<uint64_t>(request.config.seed) + number * kGolden;
      rows_.push_back({.text = i,
                       .seen = std::move(texts[i].seen),
                       .generator = at::detail::createCPUGenerator(seed)});
    }
  }

  std::vector<Generated> run() {
    at::Tensor logits = writer_.begin();
    at::Tensor tokens = take(logits);
    while (any_rank(request_, !rows_.empty())) {
      if (rows_.empty()) {
        writer_.idle();
      } else {
        tokens = take(writer_.next(tokens));
      }
    }
    return std::move(results_);
  }

 private:
  // The next token of each row; int64 [rows], of those that go on.
  at::Tensor take(const at::Tensor& logits) {
    const std::vector<int32_t> chosen = choose(logits);
    const bool stops = is_interrupted(request_);
    std::vector<int64_t> kept;
    std::vector<Row> rows;
    std::vector<int64_t> tokens;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!goes_on(rows_[i], chosen[i], stops)) continue;
      kept.push_back(static_cast<int64_t>(i));
      tokens.push_back(chosen[i]);
      rows.push_back(std::move(rows_[i]));
    }
    const bool has_ended = rows.size() < rows_.size();
    rows_ = std::move(rows);
    if (has_ended && !rows_.empty()) writer_.select(tensor_of(kept));
    return tensor_of(tokens);
  }

  std::vector<int32_t> choose(const at::Tensor& logits) const {
    const at::Tensor known = known_of(logits, request_);
    require_finite(known);
    const GenerationConfig& config = request_.config;
    std::vector<int32_t> chosen;
    if (config.temperature == 0 && config.repetition_penalty == 1) {
      const at::Tensor best = known.argmax(1).to(at::kCPU);
      const auto* values = best.const_data_ptr<int64_t>();
      for (size_t i = 0; i < rows_.size(); ++i) chosen.push_back(static_cast<int32_t>(values[i]));
      return chosen;
    }
    for (size_t i = 0; i < rows_.size(); ++i) {
      chosen.push_back(
          choose_token(known[static_cast<int64_t>(i)], rows_[i].seen, config, rows_[i].generator));
    }
    return chosen;
  }

  bool goes_on(Row& row, int32_t token, bool stops) {
    Generated& result = results_[row.text];
    if (stops) return end(result, FinishReason::interrupted);
    if (ends_text(request_, token)) return end(result, FinishReason::eos);
    result.tokens.push_back(token);
    row.seen.push_back(token);
    const auto& on_token = request_.hooks.on_token;
    if (on_token && !on_token(row.text, token)) return end(result, FinishReason::stop);
    if (std::ssize(result.tokens) >= request_.config.max_new_tokens) {
      return end(result, FinishReason::length);
    }
    return true;
  }

  static bool end(Generated& result, FinishReason reason) {
    result.reason = reason;
    return false;
  }

  // The golden ratio's bits, odd: numbers that follow each other get seeds far apart.
  static constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;

  Writer& writer_;
  const SearchRequest& request_;
  std::vector<Row> rows_;
  std::vector<Generated> results_;
};

}  // namespace

std::vector<Generated> search_tokens(Writer& writer, std::vector<SearchedText> texts,
                                     const SearchRequest& request) {
  return TokenSearch(writer, std::move(texts), request).run();
}

}  // namespace phalanx
