// SPDX-License-Identifier: Apache-2.0
#include "trainer/generation/text_follower.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace phalanx {
namespace {

// Bytes at the end of `text` that `stop` begins with, fewer than all of it.
size_t overlap(std::string_view text, std::string_view stop) {
  for (size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length) {
    if (text.ends_with(stop.substr(0, length))) return length;
  }
  return 0;
}

}  // namespace

TextFollower::TextFollower(const Tokenizer& tokenizer, std::vector<std::string> stops,
                           std::span<const int32_t> prompt)
    : decoder_(tokenizer), stops_(std::move(stops)) {
  for (const int32_t token : prompt) decoder_.add(token);
}

std::string TextFollower::add(int32_t token) { return take(decoder_.add(token)); }

std::string TextFollower::finish() {
  std::string text = take(decoder_.finish());
  if (is_stopped_) return text;
  return text + std::exchange(pending_, {});
}

size_t TextFollower::held_back() const {
  size_t most = 0;
  for (const std::string& stop : stops_) most = std::max(most, overlap(pending_, stop));
  return most;
}

std::string TextFollower::take(std::string text) {
  if (is_stopped_) return {};
  pending_ += text;
  size_t end = std::string::npos;
  for (const std::string& stop : stops_) end = std::min(end, pending_.find(stop));
  if (end != std::string::npos) {
    is_stopped_ = true;
    return pending_.substr(0, end);
  }
  const size_t certain = pending_.size() - held_back();
  std::string given = pending_.substr(0, certain);
  pending_.erase(0, certain);
  return given;
}

}  // namespace phalanx
