// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/validation_sums.h"

#include "trainer/api/metric_set.h"
#include "trainer/api/task.h"
#include "trainer/base/user_error.h"
#include "trainer/step/loss_parts.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {

ValidationSums::ValidationSums(const AnyTask& task)
    : task_(task), metrics_(declared_metrics(task), Phase::validate) {}

void ValidationSums::add(const Batch& batch, const Loss& loss) {
  broken_.insert(broken_.end(), batch.broken.begin(), batch.broken.end());
  const auto weight = static_cast<double>(batch.counted_tokens());
  tokens_ += weight;
  if (parts_.empty()) {
    for (const auto& [name, value] : loss.parts()) parts_.emplace_back(name, 0.0);
  }
  require_same_parts(parts_, loss);
  metrics_.add(batch, loss.metrics());
  if (weight == 0) return;  // not a number times 0 would be none either
  for (size_t i = 0; i < parts_.size(); ++i) {
    parts_[i].second += loss.parts()[i].second.item().toDouble() * weight;
  }
}

void ValidationSums::sum_over(const Ranks& data_ranks, const Ranks& all_ranks) {
  NamedValues all = parts_;
  all.emplace_back("tokens", tokens_);
  all.emplace_back("broken", static_cast<double>(broken_.size()));
  sum_over_ranks(all, data_ranks);
  broken_on_all_ranks_ = static_cast<int64_t>(all.back().second);
  all.pop_back();
  tokens_ = all.back().second;
  all.pop_back();
  parts_ = std::move(all);
  metric_values_ = metrics_.values(all_ranks);
}

NamedValues ValidationSums::values() const {
  NamedValues values = means();
  for (auto& derived : task_.metrics(values)) values.push_back(std::move(derived));
  append_metrics(values, metric_values_);
  return values;
}

NamedValues ValidationSums::means() const {
  if (tokens_ == 0) throw UserError("the validation data holds no whole micro-batch");
  NamedValues means = parts_;
  double total = 0;
  for (auto& [name, sum] : means) total += sum /= tokens_;
  if (means.size() == 1) means.clear();  // one part is the loss, whatever its name
  means.insert(means.begin(), {"loss", total});
  return means;
}

}  // namespace phalanx
