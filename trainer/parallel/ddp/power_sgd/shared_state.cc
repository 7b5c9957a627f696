// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/ddp/power_sgd/shared_state.h"

#include <numeric>
#include <utility>

#include "trainer/ranks/ranks.h"

namespace phalanx::power_sgd {

SharedState::SharedState(Counts& counts, const Ranks& ranks)
    : counts_(counts), all_(static_cast<std::size_t>(ranks.world_size())) {
  std::iota(all_.begin(), all_.end(), 0);
}

void SharedState::add(std::string name, const at::Tensor& tensor) {
  views_.push_back(whole_tensor(std::move(name), tensor));
  views_.back().replicas = all_;
}

}  // namespace phalanx::power_sgd
