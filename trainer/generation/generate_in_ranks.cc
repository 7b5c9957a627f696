// SPDX-License-Identifier: Apache-2.0
#include "trainer/generation/generate_in_ranks.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "trainer/base/stop_signal.h"
#include "trainer/ranks/collectives/numbers.h"

namespace phalanx {
namespace {

/// What the ranks tell each other for each token.
class Agreement {
 public:
  explicit Agreement(const Ranks& ranks) : ranks_(ranks) {}

  // Whether any rank writes; takes over a signal that has come to another one.
  bool any_writes(bool writes) {
    if (ranks_.is_single_rank()) {
      signal_ = StopSignal::received();
      return writes;
    }
    const std::array<int64_t, 2> here{writes ? 1 : 0, StopSignal::received()};
    const auto any = all_reduce_numbers(ranks_, here, Reduction::maximum);
    signal_ = static_cast<int>(any[1]);
    if (signal_ != 0) StopSignal::adopt(signal_);
    return any[0] == 1;
  }

  // The same on all ranks at the same token.
  bool is_interrupted() const { return signal_ != 0; }

 private:
  const Ranks& ranks_;
  int signal_ = 0;
};

std::string packed(const std::vector<GeneratedText>& texts) {
  nlohmann::json rows = nlohmann::json::array();
  for (const GeneratedText& text : texts) {
    rows.push_back({text.text, text.tokens, static_cast<int>(text.reason)});
  }
  return rows.dump();
}

std::vector<GeneratedText> unpacked(const std::string& rows) {
  std::vector<GeneratedText> texts;
  for (const auto& row : nlohmann::json::parse(rows)) {
    texts.push_back({.text = row[0].get<std::string>(),
                     .tokens = row[1].get<std::vector<int32_t>>(),
                     .reason = static_cast<FinishReason>(row[2].get<int>())});
  }
  return texts;
}

/// One round: a batch for each rank.
class Round {
 public:
  Round(const TextModel& model, const GenerationConfig& config, const Ranks& ranks,
        const RankedTexts& texts, Agreement& agreement)
      : model_(model), config_(config), ranks_(ranks), texts_(texts), agreement_(agreement) {}

  // `first` is the first input of rank 0's batch.
  void run(int64_t first) {
    const int64_t begin = std::min(first + ranks_.rank() * texts_.batch_size, count());
    const int64_t end = std::min(begin + texts_.batch_size, count());
    std::vector<GeneratedText> written;
    if (begin == end) {
      idle();
    } else {
      const bool streams = ranks_.is_first() && first == 0 && texts_.on_first_text;
      TextHooks hooks = common_hooks();
      if (ranks_.is_first() && texts_.on_token) {
        hooks.is_interrupted = [this] {
          texts_.on_token();
          return agreement_.is_interrupted();
        };
      }
      if (streams) {
        hooks.on_text = [this](size_t text, std::string_view part) {
          if (text == 0) texts_.on_first_text(part);
        };
      }
      written = generate_texts(
          model_,
          texts_.inputs.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
          config_, hooks);
    }
    gather(written);
  }

 private:
  int64_t count() const { return std::ssize(texts_.inputs); }

  TextHooks common_hooks() const {
    return {.is_interrupted = [this] { return agreement_.is_interrupted(); },
            .any_rank = [this](bool writes) { return agreement_.any_writes(writes); }};
  }

  // Takes part in the others' steps: a batch of one text that ends with its first token.
  void idle() {
    GenerationConfig config = config_;
    config.max_new_tokens = 1;
    generate_texts(model_, texts_.inputs.first(1), config, common_hooks());
  }

  void gather(const std::vector<GeneratedText>& written) {
    if (ranks_.is_single_rank()) return texts_.take(written);
    const std::vector<std::string> all = ranks_.all_gather(packed(written));
    if (!ranks_.is_first()) return;
    for (const std::string& rows : all) texts_.take(unpacked(rows));
  }

  const TextModel& model_;
  const GenerationConfig& config_;
  const Ranks& ranks_;
  const RankedTexts& texts_;
  Agreement& agreement_;
};

}  // namespace

void generate_in_ranks(const TextModel& model, const GenerationConfig& config, const Ranks& ranks,
                       const RankedTexts& texts) {
  Agreement agreement(ranks);
  Round round(model, config, ranks, texts, agreement);
  const int64_t step = texts.batch_size * ranks.world_size();
  for (int64_t first = 0; first < std::ssize(texts.inputs); first += step) {
    round.run(first);
    agreement.any_writes(false);
    if (agreement.is_interrupted()) return;
  }
}

}  // namespace phalanx
