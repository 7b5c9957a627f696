// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/broken_samples.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>
#include <stdexcept>
#include <vector>

namespace phalanx {
namespace {

// Ends a part of what a rank sends: in no path, and in no kind.
constexpr char kEnd = '\0';

}  // namespace

void BrokenSamples::add(std::span<const BrokenSample> mine, int64_t on_all_ranks) {
  for (const BrokenSample& sample : mine) ++mine_[{sample.source, sample.kind}];
  count_ += on_all_ranks;
}

void BrokenSamples::require_at_most(int64_t max_broken, const Ranks& ranks,
                                    const std::string& where) const {
  if (count_ <= max_broken) return;
  throw std::runtime_error(fmt::format("{}broken samples: {}, while max_broken allows {}: {}",
                                       where, count_, max_broken, summary(ranks)));
}

std::string BrokenSamples::summary(const Ranks& ranks) const {
  if (count_ == 0) return {};
  std::string sent;
  for (const auto& [key, count] : mine_) {
    sent += key.first + kEnd + key.second + kEnd + std::to_string(count) + kEnd;
  }
  std::map<std::pair<std::string, std::string>, int64_t> all;
  for (const std::string& text : ranks.all_gather(sent)) {
    std::istringstream received(text);
    for (std::string source, kind, count; std::getline(received, source, kEnd);) {
      std::getline(received, kind, kEnd);
      std::getline(received, count, kEnd);
      all[{source, kind}] += std::stoll(count);
    }
  }
  std::vector<std::string> parts;
  for (const auto& [key, count] : all) {
    parts.push_back(fmt::format("{} of '{}' ({})", count, key.first, key.second));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace phalanx
