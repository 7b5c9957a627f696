// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/calls_under_way.h"

#include <fmt/format.h>

namespace phalanx::rpc {

void CallsUnderWay::begin(const std::string& worker, const std::string& function) {
  const std::scoped_lock lock(mutex_);
  ++counts_[{worker, function}];
}

void CallsUnderWay::end(const std::string& worker, const std::string& function) {
  const std::scoped_lock lock(mutex_);
  const auto found = counts_.find({worker, function});
  if (found != counts_.end() && --found->second == 0) counts_.erase(found);
}

std::string CallsUnderWay::text() const {
  const std::scoped_lock lock(mutex_);
  std::string text;
  for (const auto& [call, count] : counts_) {
    text += fmt::format("{}'{}' of {}", text.empty() ? "" : "; ", call.second, call.first);
    if (count > 1) text += fmt::format(", {} times", count);
  }
  return text;
}

}  // namespace phalanx::rpc
