// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/held_back.h"

#include <fmt/format.h>

#include <algorithm>

namespace phalanx {
namespace {

int64_t share_of(double fraction, int64_t size) {
  return static_cast<int64_t>(fraction * static_cast<double>(size));
}

}  // namespace

int64_t HeldBack::of(int64_t size) const {
  const int64_t share = share_of(fraction, size);
  return limit ? std::min(share, *limit) : share;
}

bool HeldBack::is_bounded(int64_t size) const { return of(size) < share_of(fraction, size); }

void HeldBackSum::add(const HeldBack& rule, int64_t size) {
  ++sources_;
  held_back_ += rule.of(size);
  all_ += size;
  is_bounded_ = is_bounded_ || rule.is_bounded(size);
}

std::string HeldBackSum::text(std::string_view element, std::string_view field) const {
  if (held_back_ == 0) return {};
  return fmt::format("the last {} of {} {}{}{}", held_back_, all_, element,
                     sources_ > 1 ? ", of each source its own" : "",
                     is_bounded_ ? fmt::format(", bounded by {}", field) : "");
}

}  // namespace phalanx
