// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/nearest.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "trainer/base/joined.h"

namespace phalanx {

namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

bool starts_with(std::string_view text, std::string_view start) {
  return text.size() >= start.size() &&
         std::equal(start.begin(), start.end(), text.begin(),
                    [](char a, char b) { return lower(a) == lower(b); });
}

/// "lr" of "learning_rate"; empty for a name of one word.
std::string initials(std::string_view name) {
  std::string letters;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool begins = i == 0 || name[i - 1] == '_' || name[i - 1] == '-';
    if (begins) letters += lower(name[i]);
  }
  return letters.size() > 1 ? letters : "";
}

/// Whether a name is another one's last words: "epochs" of "max_epochs".
bool ends_words(std::string_view name, std::string_view end) {
  return name.size() > end.size() && end.size() > 1 && name.ends_with(end) &&
         name[name.size() - end.size() - 1] == '_';
}

/// What other programs call the same.
bool is_other_spelling(std::string_view name, std::string_view candidate) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kSame{
      {{"bf16", "bfloat16"}, {"fp16", "float16"}, {"fp32", "float32"}, {"r", "rank"}}};
  return std::any_of(kSame.begin(), kSame.end(), [&](const auto& same) {
    return (same.first == name && same.second == candidate) ||
           (same.second == name && same.first == candidate);
  });
}

bool is_close(std::string_view name, std::string_view candidate) {
  const std::size_t allowed = std::max<std::size_t>(1, std::max(name.size(), candidate.size()) / 3);
  if (edit_distance(name, candidate) <= allowed && candidate.size() > 1) return true;
  const bool abbreviates = !name.empty() && initials(candidate) == name;
  if (abbreviates || initials(name) == candidate) return true;
  if (ends_words(name, candidate) || ends_words(candidate, name)) return true;
  constexpr std::size_t kTellingStart = 3;
  return std::min(name.size(), candidate.size()) >= kTellingStart &&
         (starts_with(name, candidate) || starts_with(candidate, name));
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Names are short, but a user's text need not be: beyond this it is no misspelling of anything.
  constexpr std::size_t kLongest = 200;
  if (a.size() > kLongest || b.size() > kLongest) return std::max(a.size(), b.size());
  std::vector<std::size_t> two_above(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(two_above, above);
    std::swap(above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                           lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::vector<std::string> by_nearness(std::string_view name, std::vector<std::string> candidates) {
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    ranked.emplace_back(distance, std::move(candidate));
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> result;
  for (auto& [distance, candidate] : ranked) result.push_back(std::move(candidate));
  return result;
}

std::optional<std::string> nearest(std::string_view name,
                                   const std::vector<std::string>& candidates) {
  for (const std::string& candidate : candidates) {
    if (is_other_spelling(name, candidate)) return candidate;
  }
  for (std::string& candidate : by_nearness(name, candidates)) {
    if (is_close(name, candidate)) return std::move(candidate);
  }
  return std::nullopt;
}

std::string unknown_name(std::string_view kind, std::string_view name,
                         std::vector<std::string> candidates) {
  const std::string text = "unknown " + std::string(kind) + " '" + std::string(name) + "'; ";
  if (candidates.empty()) return text + "there is none";
  const auto near = nearest(name, candidates);
  return text + (near ? "did you mean '" + *near + "'? There are: " : "there are: ") +
         joined(by_nearness(name, std::move(candidates)));
}

std::string unknown_class(std::string_view kind, std::string_view name,
                          const std::vector<std::string>& candidates) {
  std::string text = unknown_name(kind, name, candidates);
  if (nearest(name, candidates)) return text;
  return text + "; for one of your own, name its library in the deps of this program's " +
         "trainer_binary";
}

}  // namespace phalanx
