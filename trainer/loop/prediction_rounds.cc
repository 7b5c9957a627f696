// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/prediction_rounds.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/base/stop_signal.h"
#include "trainer/base/user_error.h"
#include "trainer/ranks/collectives/at_length.h"
#include "trainer/ranks/collectives/numbers.h"

namespace phalanx {
namespace {

// Between two texts that travel together; no text of a sample holds one.
constexpr char kEnd = '\0';

std::vector<std::string> split(std::string_view joined) {
  std::vector<std::string> texts;
  while (!joined.empty()) {
    const size_t end = joined.find(kEnd);
    texts.emplace_back(joined.substr(0, end));
    joined.remove_prefix(end + 1);
  }
  return texts;
}

class Rounds {
 public:
  Rounds(const PredictionSource& source, const PredictionRequest& request, const Ranks& ranks,
         const ComputePredictions& compute)
      : source_(source), request_(request), ranks_(ranks), compute_(compute) {}

  void run() {
    const int64_t step = request_.batch_size * ranks_.world_size();
    for (int64_t first = samples_done(); first < source_.samples(); first += step) {
      const int64_t begin =
          std::min(first + ranks_.rank() * request_.batch_size, source_.samples());
      gather(texts_of(begin, std::min(begin + request_.batch_size, source_.samples())));
      if (broadcast_number(ranks_, StopSignal::received()) != 0) return;
    }
  }

 private:
  int64_t samples_done() const {
    int64_t done = 0;
    on_first_rank_at_length(ranks_, [&](const StillAtIt& still_at_it) {
      if (!request_.marks_problems) require_readable(still_at_it);
      done = request_.done(source_);
    });
    return broadcast_number(ranks_, done);
  }

  // Before the first is computed: a mistake in the last line must not cost all before it.
  void require_readable(const StillAtIt& still_at_it) const {
    for (int64_t begin = 0; begin < source_.samples(); begin += request_.batch_size) {
      still_at_it();
      const int64_t end = std::min(begin + request_.batch_size, source_.samples());
      for (const auto& problem : source_.batch(begin, end).problems) {
        if (problem) throw UserError(*problem);
      }
    }
  }

  std::string texts_of(int64_t begin, int64_t end) {
    PredictionBatch made;
    if (begin < end) made = source_.batch(begin, end);
    Predictions predictions;
    if (made.batch) {
      predictions = compute_(*made.batch, /*is_asked_for=*/true);
    } else if (const auto other = any_batch()) {
      compute_(*other, /*is_asked_for=*/false);
    }
    return joined(begin, made.problems, predictions);
  }

  std::string joined(int64_t begin, const std::vector<std::optional<std::string>>& problems,
                     const Predictions& predictions) const {
    std::string texts;
    auto next = predictions.begin();
    for (size_t i = 0; i < problems.size(); ++i) {
      const int64_t sample = begin + static_cast<int64_t>(i);
      if (!problems[i] && next == predictions.end()) {
        throw std::logic_error("the task made fewer predictions than a batch has samples");
      }
      texts += problems[i] ? request_.format_problem(sample, *problems[i])
                           : request_.format(sample, *next++);
      texts += kEnd;
    }
    return texts;
  }

  // A batch of the first sample that can be read, if there is one: the same on all ranks.
  std::unique_ptr<Batch> any_batch() const {
    if (ranks_.is_single_rank()) return nullptr;
    for (int64_t sample = 0; sample < source_.samples(); ++sample) {
      if (auto batch = source_.batch(sample, sample + 1).batch) return batch;
    }
    return nullptr;
  }

  void gather(const std::string& own) {
    if (ranks_.is_single_rank()) return request_.take(split(own));
    std::vector<std::string> texts;
    for (const std::string& of_rank : ranks_.all_gather(own)) {
      for (std::string& text : split(of_rank)) texts.push_back(std::move(text));
    }
    if (ranks_.is_first()) request_.take(texts);
  }

  const PredictionSource& source_;
  const PredictionRequest& request_;
  const Ranks& ranks_;
  const ComputePredictions& compute_;
};

}  // namespace

void predict_in_rounds(const PredictionSource& source, const PredictionRequest& request,
                       const Ranks& ranks, const ComputePredictions& compute) {
  Rounds(source, request, ranks, compute).run();
}

}  // namespace phalanx
