// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/known_passes.h"

#include <algorithm>

namespace phalanx::fsdp {
namespace {

// A model that draws its way anew in each pass has no order worth keeping.
constexpr std::size_t kMost = 64;

}  // namespace

const PassSteps* KnownPasses::expected(PassKind kind) const {
  if (before_) {
    const auto followed = next_.find({kind, *before_});
    if (followed != next_.end()) return passes_[followed->second].get();
  }
  const auto& newest = newest_[static_cast<std::size_t>(kind)];
  return newest ? passes_[*newest].get() : nullptr;
}

void KnownPasses::add(PassKind kind, const PassSteps& steps) {
  const std::size_t number = number_of(steps);
  if (before_) next_[{kind, *before_}] = number;
  newest_[static_cast<std::size_t>(kind)] = before_ = number;
}

std::size_t KnownPasses::number_of(const PassSteps& steps) {
  const auto found =
      std::ranges::find_if(passes_, [&](const auto& pass) { return *pass == steps; });
  if (found != passes_.end()) return static_cast<std::size_t>(found - passes_.begin());
  if (passes_.size() == kMost) *this = KnownPasses();
  passes_.push_back(std::make_unique<const PassSteps>(steps));
  return passes_.size() - 1;
}

}  // namespace phalanx::fsdp
