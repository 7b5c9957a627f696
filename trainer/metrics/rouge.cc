// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/rouge.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace phalanx {
namespace {

// The characters outside of ASCII whose lower case has a letter of it: k, and i with a dot above.
constexpr std::string_view kKelvinSign = "\u212A";
constexpr std::string_view kDottedCapitalI = "\u0130";

// Numbers that stand for words: the same for the same word.
using Words = std::vector<int64_t>;

class Vocabulary {
 public:
  int64_t number_of(const std::string& word) {
    return numbers_.try_emplace(word, size()).first->second;
  }
  int64_t size() const { return static_cast<int64_t>(numbers_.size()); }

 private:
  std::unordered_map<std::string, int64_t> numbers_;
};

/// Takes the first bytes off a text and returns what they are to words: a letter in lower case, a
/// digit, the end of a line, or a space for all else.
char take_character(std::string_view& text) {
  if (text.starts_with(kKelvinSign)) {
    text.remove_prefix(kKelvinSign.size());
    return 'k';
  }
  const bool is_dotted_i = text.starts_with(kDottedCapitalI);
  const char first = text.front();
  text.remove_prefix(1);
  // The second byte of it then is a space, as the dot is, a character of its own in lower case.
  if (is_dotted_i) return 'i';
  if (first >= 'A' && first <= 'Z') return static_cast<char>(first - 'A' + 'a');
  const bool is_kept =
      (first >= 'a' && first <= 'z') || (first >= '0' && first <= '9') || first == '\n';
  return is_kept ? first : ' ';
}

/// The words of each line; lines without any are left out, except the last.
std::vector<Words> words_by_line(std::string_view text, Vocabulary& vocabulary) {
  std::vector<Words> lines(1);
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) lines.back().push_back(vocabulary.number_of(word));
    word.clear();
  };
  while (!text.empty()) {
    const char character = take_character(text);
    if (character != ' ' && character != '\n') {
      word += character;
      continue;
    }
    end_word();
    if (character == '\n' && !lines.back().empty()) lines.emplace_back();
  }
  end_word();
  return lines;
}

Words joined_lines(const std::vector<Words>& lines) {
  Words words;
  for (const Words& line : lines) words.insert(words.end(), line.begin(), line.end());
  return words;
}

std::vector<std::pair<int64_t, int64_t>> pairs_of(const Words& words) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (size_t i = 1; i < words.size(); ++i) pairs.emplace_back(words[i - 1], words[i]);
  return pairs;
}

/// From hits and the numbers of what could have been hit, in the order of rouge_score's operations.
double f_measure(size_t hits, size_t in_text, size_t in_reference) {
  if (hits == 0) return 0;
  const double precision = static_cast<double>(hits) / static_cast<double>(in_text);
  const double recall = static_cast<double>(hits) / static_cast<double>(in_reference);
  return 2 * precision * recall / (precision + recall);
}

/// The F-measure of two bags of words, or of pairs of words.
template <typename Gram>
double overlap(std::vector<Gram> text, std::vector<Gram> reference) {
  std::sort(text.begin(), text.end());
  std::sort(reference.begin(), reference.end());
  std::vector<Gram> common;
  std::set_intersection(text.begin(), text.end(), reference.begin(), reference.end(),
                        std::back_inserter(common));
  return f_measure(common.size(), text.size(), reference.size());
}

/// The length of the longest common subsequence. Calls visit(i, j, is_left_longer) for the words i
/// and j of the two: whether that of the words up to (i, j - 1) is longer than up to (i - 1, j).
template <typename Visit>
size_t longest_common(const Words& reference, const Words& text, const Visit& visit) {
  std::vector<size_t> row(text.size() + 1);
  for (size_t i = 0; i < reference.size(); ++i) {
    size_t diagonal = 0;
    for (size_t j = 0; j < text.size(); ++j) {
      const size_t above = row[j + 1];
      const size_t left = row[j];
      row[j + 1] = reference[i] == text[j] ? diagonal + 1 : std::max(left, above);
      visit(i, j, left > above);
      diagonal = above;
    }
  }
  return row.back();
}

double longest_common_f_measure(const Words& text, const Words& reference) {
  const size_t hits = longest_common(reference, text, [](size_t, size_t, bool) {});
  return f_measure(hits, text.size(), reference.size());
}

/// Marks the words of a reference that are in its longest common subsequence with a text: of
/// several the one that rouge_score takes.
void mark_longest_common(const Words& reference, const Words& text, std::vector<bool>& is_marked) {
  std::vector<bool> goes_left(reference.size() * text.size());
  longest_common(reference, text, [&](size_t i, size_t j, bool is_left_longer) {
    goes_left[i * text.size() + j] = is_left_longer;
  });
  size_t i = reference.size();
  size_t j = text.size();
  while (i > 0 && j > 0) {
    if (reference[i - 1] == text[j - 1]) {
      is_marked[--i] = true;
      --j;
    } else if (goes_left[(i - 1) * text.size() + j - 1]) {
      --j;
    } else {
      --i;
    }
  }
}

/// Words in the union of a reference line's longest common subsequences with each line of a text.
Words union_of_common(const Words& reference, const std::vector<Words>& text) {
  std::vector<bool> is_marked(reference.size());
  for (const Words& line : text) mark_longest_common(reference, line, is_marked);
  Words words;
  for (size_t i = 0; i < reference.size(); ++i) {
    if (is_marked[i]) words.push_back(reference[i]);
  }
  return words;
}

/// How many words of the unions are in the text, each of its words used once.
size_t summary_hits(const std::vector<Words>& text, const std::vector<Words>& reference,
                    const Vocabulary& vocabulary) {
  std::vector<size_t> unused(static_cast<size_t>(vocabulary.size()));
  for (const Words& line : text) {
    for (const int64_t word : line) ++unused[static_cast<size_t>(word)];
  }
  size_t hits = 0;
  for (const Words& line : reference) {
    for (const int64_t word : union_of_common(line, text)) {
      size_t& left = unused[static_cast<size_t>(word)];
      if (left == 0) continue;
      --left;
      ++hits;
    }
  }
  return hits;
}

std::string_view without_outer_space(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

}  // namespace

Rouge rouge(std::string_view text, std::string_view reference) {
  Vocabulary vocabulary;
  const std::vector<Words> text_lines = words_by_line(text, vocabulary);
  const std::vector<Words> reference_lines = words_by_line(reference, vocabulary);
  const Words text_words = joined_lines(text_lines);
  const Words reference_words = joined_lines(reference_lines);
  Rouge scores;
  scores.rouge1 = overlap(text_words, reference_words);
  scores.rouge2 = overlap(pairs_of(text_words), pairs_of(reference_words));
  scores.rouge_l = longest_common_f_measure(text_words, reference_words);
  scores.rouge_lsum = f_measure(summary_hits(text_lines, reference_lines, vocabulary),
                                text_words.size(), reference_words.size());
  return scores;
}

bool is_exact_match(std::string_view text, std::string_view reference) {
  return without_outer_space(text) == without_outer_space(reference);
}

}  // namespace phalanx
