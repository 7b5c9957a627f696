// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/text_score_sums.h"

#include "trainer/base/user_error.h"
#include "trainer/step/loss_parts.h"

namespace phalanx {

void TextScoreSums::add(const Batch& batch, const std::vector<NamedValues>& scores) {
  for (const NamedValues& sample : scores) {
    if (sums_.empty()) {
      for (const auto& [name, value] : sample) sums_.emplace_back(name, 0.0);
    }
    if (!batch.counts) continue;
    for (size_t i = 0; i < sample.size(); ++i) sums_[i].second += sample[i].second;
    ++samples_;
  }
}

NamedValues TextScoreSums::means(const Ranks& ranks) const {
  NamedValues all = sums_;
  all.emplace_back("samples", static_cast<double>(samples_));
  sum_over_ranks(all, ranks);
  const double samples = all.back().second;
  all.pop_back();
  if (samples == 0) {
    throw UserError(
        "validation.generate.n: the task writes no texts to compare with its targets: set it to 0");
  }
  for (auto& [name, sum] : all) sum /= samples;
  return all;
}

}  // namespace phalanx
