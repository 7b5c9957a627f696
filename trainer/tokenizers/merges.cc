// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/merges.h"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>

namespace phalanx {
namespace {

uint64_t key_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

void Merges::add(int32_t left, int32_t right, int32_t token) {
  const Merge merge{.rank = next_rank_++, .token = token};
  if (!merges_.insert_or_assign(key_of(left, right), merge).second) repeat_pairs_ = true;
}

Merges::Merge Merges::find(int32_t left, int32_t right) const {
  const auto found = merges_.find(key_of(left, right));
  return found == merges_.end() ? Merge{.rank = kNone, .token = 0} : found->second;
}

void Merges::apply(std::vector<int32_t>& tokens, size_t begin) const {
  const std::span part = std::span(tokens).subspan(begin);
  const size_t left = part.size() <= kMostScanned ? scan(part) : take_from_queue(part);
  tokens.resize(begin + left);
}

// For words: looking through all pairs for the next merge is faster than keeping them in order.
size_t Merges::scan(std::span<int32_t> tokens) const {
  size_t count = tokens.size();
  if (count < 2) return count;
  // Ranks and results of the pairs that begin at each token.
  std::array<int32_t, kMostScanned> ranks{};
  std::array<int32_t, kMostScanned> merged{};
  const auto look_at = [&](size_t i) {
    const Merge merge = find(tokens[i], tokens[i + 1]);
    ranks[i] = merge.rank;
    merged[i] = merge.token;
  };
  for (size_t i = 0; i + 1 < count; ++i) look_at(i);
  while (count > 1) {
    const auto* const pairs_end = ranks.begin() + (count - 1);
    const auto* const first = std::min_element(ranks.cbegin(), pairs_end);
    if (*first == kNone) break;
    const auto i = static_cast<size_t>(first - ranks.cbegin());
    tokens[i] = merged[i];
    std::copy(tokens.begin() + i + 2, tokens.begin() + count, tokens.begin() + i + 1);
    std::copy(ranks.begin() + i + 2, ranks.begin() + count, ranks.begin() + i + 1);
    std::copy(merged.begin() + i + 2, merged.begin() + count, merged.begin() + i + 1);
    --count;
    if (i > 0) look_at(i - 1);
    if (i + 1 < count) look_at(i);
  }
  return count;
}

// For long runs, where scanning would take quadratic time.
size_t Merges::take_from_queue(std::span<int32_t> tokens) const {
  const auto count = static_cast<uint32_t>(tokens.size());
  std::vector<uint32_t> before(count);
  std::vector<uint32_t> behind(count);  // `count` stands for none.
  std::vector<Merge> merges(count, Merge{.rank = kNone, .token = 0});
  // Rank and place of a pair in one number; those that have changed since are skipped.
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> queue;
  const auto look_at = [&](uint32_t i) {
    merges[i] =
        behind[i] == count ? Merge{.rank = kNone, .token = 0} : find(tokens[i], tokens[behind[i]]);
    if (merges[i].rank != kNone) queue.push(key_of(merges[i].rank, static_cast<int32_t>(i)));
  };
  for (uint32_t i = 0; i < count; ++i) {
    before[i] = i == 0 ? count : i - 1;
    behind[i] = i + 1;
  }
  for (uint32_t i = 0; i < count; ++i) look_at(i);
  while (!queue.empty()) {
    const auto i = static_cast<uint32_t>(queue.top());
    const auto rank = static_cast<int32_t>(queue.top() >> 32);
    queue.pop();
    if (merges[i].rank != rank) continue;
    const uint32_t gone = behind[i];
    tokens[i] = merges[i].token;
    behind[i] = behind[gone];
    merges[gone].rank = kNone;
    if (behind[i] != count) before[behind[i]] = i;
    look_at(i);
    if (before[i] != count) look_at(before[i]);
  }
  size_t left = 0;
  for (uint32_t i = 0; i != count; i = behind[i]) tokens[left++] = tokens[i];
  return left;
}

}  // namespace phalanx
