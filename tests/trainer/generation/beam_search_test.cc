// SPDX-License-Identifier: Apache-2.0
#include "trainer/generation/beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace phalanx {
namespace {

constexpr int32_t kEnd = 0;
constexpr int32_t kVocabulary = 4;
constexpr size_t kLongest = 4;

using Text = std::vector<int32_t>;

bool is_finished(std::span<const int32_t> text) {
  return text.back() == kEnd || text.size() == kLongest;
}

/// A random language: the log-probabilities of the next token after each text.
class Language {
 public:
  explicit Language(uint64_t seed) : random_(seed) {}

  const std::vector<double>& after(const Text& text) {
    const auto [found, is_new] = by_text_.try_emplace(text);
    if (is_new) {
      double sum = 0;
      for (int32_t i = 0; i < kVocabulary; ++i) {
        found->second.push_back(std::exp(normal_(random_)));
        sum += found->second.back();
      }
      for (double& value : found->second) value = std::log(value / sum);
    }
    return found->second;
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_{0, 1.5};
  std::map<Text, std::vector<double>> by_text_;
};

Text found_by_beams(Language& language, const GenerationConfig& config) {
  BeamSearch search(config, is_finished);
  while (!search.is_done()) {
    std::vector<Continuation> all;
    int64_t place = 0;
    for (const auto& beam : search.beams()) {
      for (int32_t token = 0; token < kVocabulary; ++token) {
        const double next = language.after(beam.tokens)[static_cast<size_t>(token)];
        all.push_back(
            {.log_probability = beam.log_probability + next, .beam = place, .token = token});
      }
      ++place;
    }
    std::ranges::sort(all, std::greater(), &Continuation::log_probability);
    all.resize(std::min(all.size(), static_cast<size_t>(2 * config.num_beams)));
    search.advance(all);
  }
  return search.best();
}

// Every text there is.
void visit(Language& language, const Text& text, double sum, double penalty, Text& best,
           double& best_score) {
  for (int32_t token = 0; token < kVocabulary; ++token) {
    Text longer = text;
    longer.push_back(token);
    const double total = sum + language.after(text)[static_cast<size_t>(token)];
    if (!is_finished(longer)) {
      visit(language, longer, total, penalty, best, best_score);
      continue;
    }
    const double score = total / std::pow(static_cast<double>(longer.size()), penalty);
    if (score <= best_score) continue;
    best_score = score;
    best = longer;
  }
}

TEST(BeamSearch, WithBeamsForAllTextsItFindsTheBest) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Language language(seed);
    GenerationConfig config;
    config.num_beams = 256;  // 4^4 texts.
    config.length_penalty = 0;
    Text best;
    double best_score = -1e300;
    visit(language, {}, 0, config.length_penalty, best, best_score);
    EXPECT_EQ(found_by_beams(language, config), best) << "seed " << seed;
  }
}

TEST(BeamSearch, MoreBeamsFindBetterTexts) {
  double one = 0;
  double four = 0;
  const auto score = [](Language& language, const Text& text) {
    double sum = 0;
    Text before;
    for (const int32_t token : text) {
      sum += language.after(before)[static_cast<size_t>(token)];
      before.push_back(token);
    }
    return sum;
  };
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Language language(seed);
    GenerationConfig config;
    config.length_penalty = 0;
    config.num_beams = 1;
    one += score(language, found_by_beams(language, config));
    config.num_beams = 4;
    four += score(language, found_by_beams(language, config));
  }
  EXPECT_GT(four, one);
}

TEST(BeamSearch, ALengthPenaltyPrefersLongTexts) {
  // The end is likely from the first token on; a text of three tokens has a better mean.
  const auto text_with = [](double penalty) {
    GenerationConfig config;
    config.num_beams = 2;
    config.length_penalty = penalty;
    BeamSearch search(config, is_finished);
    search.advance(std::vector<Continuation>{{-0.7, 0, kEnd}, {-0.8, 0, 1}, {-3, 0, 2}});
    if (!search.is_done()) search.advance(std::vector<Continuation>{{-0.9, 0, kEnd}, {-2, 0, 1}});
    return search.best();
  };
  EXPECT_EQ(text_with(0), (Text{kEnd}));
  EXPECT_EQ(text_with(1), (Text{1, kEnd}));
}

TEST(BeamSearch, EarlyStoppingEndsOnceAsManyAreFinished) {
  GenerationConfig config;
  config.num_beams = 1;
  const std::vector<Continuation> first{{-2.0, 0, kEnd}, {-2.1, 0, 1}};
  config.length_penalty = 1;
  BeamSearch patient(config, is_finished);
  patient.advance(first);
  EXPECT_TRUE(patient.is_done());  // -2.1 / 1 is not better than -2.
  config.length_penalty = 2;
  BeamSearch hopeful(config, is_finished);
  hopeful.advance(first);
  config.early_stopping = true;
  BeamSearch early(config, is_finished);
  early.advance(first);
  EXPECT_TRUE(early.is_done());
  EXPECT_EQ(early.best(), (Text{kEnd}));
}

}  // namespace
}  // namespace phalanx
