// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "trainer/tokenizers/byte_tokens.h"
#include "trainer/tokenizers/json_vocabulary.h"
#include "trainer/tokenizers/models/byte_trie.h"
#include "trainer/tokenizers/models/kinds.h"
#include "trainer/tokenizers/models/score_number.h"
#include "trainer/tokenizers/models/word_cache.h"
#include "trainer/tokenizers/unicode/characters.h"
#include "trainer/tokenizers/vocabulary.h"

namespace phalanx::models {
namespace {

using nlohmann::json;

// How much worse an unknown character is than the worst token.
constexpr double kUnknownPenalty = 10;

struct ScoredText {
  std::string text;
  double score = 0;
};

// A unigram language model (Kudo, 2018): of all ways to cut a piece into tokens, the likeliest.
class Unigram final : public Model {
 public:
  Unigram(std::vector<ScoredText> entries, int32_t unknown, bool byte_fallback,
          const ModelContext& context)
      : entries_(std::move(entries)), unknown_(unknown) {
    double least = std::numeric_limits<double>::infinity();
    std::vector<ByteTrie::Entry> texts;
    for (int32_t token = 0; token < size(); ++token) {
      const auto& [text, score] = entries_[token];
      least = std::min(least, score);
      tokens_[text] = token;
      if (!context.hidden.contains(text)) texts.emplace_back(text, token);
    }
    trie_ = ByteTrie(std::move(texts));
    hidden_ = context.hidden;
    unknown_score_ = least - kUnknownPenalty;
    if (byte_fallback)
      bytes_ = ByteTokens([this](std::string_view text) { return token_of(text); });
  }

  void encode(std::string_view piece, std::vector<int32_t>& tokens) const override {
    cache_.encode(piece, tokens, [this](std::string_view text, std::vector<int32_t>& found) {
      append_path(text, best_path(text), found);
    });
  }

  std::optional<std::string_view> text_of(int32_t token) const override {
    if (token < 0 || token >= size()) return std::nullopt;
    return entries_[token].text;
  }
  std::optional<int32_t> token_of(std::string_view text) const override {
    const auto found = tokens_.find(text);
    if (found == tokens_.end()) return std::nullopt;
    return found->second;
  }
  std::size_t count() const override { return entries_.size(); }
  int32_t size() const override { return static_cast<int32_t>(entries_.size()); }

 private:
  // The last token of the best way to a place.
  struct Step {
    double score = 0;
    std::size_t begin = kNowhere;
    int32_t token = 0;
  };
  // A token of the path, or unknown characters that follow each other.
  struct Part {
    std::size_t begin = 0;
    std::size_t end = 0;
    int32_t token = 0;
  };

  static constexpr std::size_t kNowhere = SIZE_MAX;

  // In the order of the text, the last first.
  static std::vector<Part>& path_of_this_thread() {
    thread_local std::vector<Part> path;
    path.clear();
    return path;
  }

  static std::vector<Step>& steps_of_this_thread(std::size_t count) {
    thread_local std::vector<Step> steps;
    steps.assign(count, {});
    return steps;
  }

  const std::vector<Part>& best_path(std::string_view text) const {
    std::vector<Step>& steps = steps_of_this_thread(text.size() + 1);
    for (std::size_t place = 0; place < text.size();) {
      const std::size_t length = unicode::character_at(text, place).length;
      const double score = steps[place].score;
      bool has_character = false;
      const auto offer = [&](std::size_t bytes, int32_t token, double with) {
        Step& step = steps[place + bytes];
        if (step.begin == kNowhere || with > step.score) {
          step = {.score = with, .begin = place, .token = token};
        }
      };
      trie_.find_prefixes(text.substr(place), [&](std::size_t bytes, int32_t token) {
        offer(bytes, token, entries_[token].score + score);
        has_character = has_character || bytes == length;
      });
      if (!has_character) offer(length, unknown_, unknown_score_ + score);
      place += length;
    }
    std::vector<Part>& path = path_of_this_thread();
    for (std::size_t end = text.size(); end > 0; end = steps[end].begin) {
      const Step& step = steps[end];
      if (step.token == unknown_ && !path.empty() && path.back().token == unknown_) {
        path.back().begin = step.begin;
      } else {
        path.push_back({.begin = step.begin, .end = end, .token = step.token});
      }
    }
    return path;
  }

  void append_path(std::string_view text, const std::vector<Part>& path,
                   std::vector<int32_t>& tokens) const {
    for (auto part = path.rbegin(); part != path.rend(); ++part) {
      if (part->token == unknown_) {
        append_unknown(text.substr(part->begin, part->end - part->begin), tokens);
      } else {
        tokens.push_back(part->token);
      }
    }
  }

  // Unknown characters may be a token together.
  void append_unknown(std::string_view text, std::vector<int32_t>& tokens) const {
    const auto token = token_of(text);
    if (token && !hidden_.contains(text)) {
      tokens.push_back(*token);
    } else if (!bytes_.append(text, tokens)) {
      tokens.push_back(unknown_);
    }
  }

  std::vector<ScoredText> entries_;
  int32_t unknown_;
  double unknown_score_ = 0;
  TokenOfText tokens_;  // By the texts above.
  std::set<std::string, std::less<>> hidden_;
  ByteTrie trie_;
  ByteTokens bytes_;
  WordCache cache_;
};

}  // namespace

Made read_unigram(const json& object, const ModelContext& context) {
  std::vector<ScoredText> entries;
  for (const json& entry : object.at("vocab")) {
    entries.push_back(
        {.text = entry.at(0).get<std::string>(), .score = score_number(entry.at(1).get<double>())});
  }
  const json& unknown = object.at("unk_id");
  if (unknown.is_null()) {
    throw std::invalid_argument("an unknown character would have no token: it needs an unk_id");
  }
  const int32_t token = token_number(unknown);
  if (static_cast<std::size_t>(token) >= entries.size() ||
      entries.size() > static_cast<std::size_t>(Vocabulary::kLargest)) {
    throw std::invalid_argument(
        fmt::format("the unk_id {} is none of the {} tokens", token, entries.size()));
  }
  return std::make_shared<Unigram>(std::move(entries), token, object.value("byte_fallback", false),
                                   context);
}

}  // namespace phalanx::models
