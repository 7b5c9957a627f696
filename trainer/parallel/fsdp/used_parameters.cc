// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/used_parameters.h"

#include <algorithm>
#include <utility>

#include "trainer/tensors/tensors.h"

namespace phalanx::fsdp {

UsedParameters::UsedParameters(Ranks world) : world_(std::move(world)) {}

void UsedParameters::start(const std::vector<bool>& here) {
  arrival_.wait();  // that of the step before, in the same order on every rank
  all_here_ = std::find(here.begin(), here.end(), false) == here.end();
  message_ = tensors::empty({static_cast<int64_t>(here.size())}, at::kInt);
  std::copy(here.begin(), here.end(), message_.mutable_data_ptr<int>());
  arrival_ = world_.start_all_reduce(message_, Reduction::maximum);
}

void UsedParameters::finish() {
  if (all_here_) return;  // the maximum of flags of which one is set
  arrival_.wait();
  flags_ = message_.const_data_ptr<int>();
}

}  // namespace phalanx::fsdp
