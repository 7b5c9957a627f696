// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/pipeline/open_passes.h"

namespace phalanx::pipeline {

std::shared_ptr<const void> OpenPasses::open(int64_t pass) {
  const auto graph = std::make_shared<const int64_t>(pass);
  graphs_[pass] = graph;
  return graph;
}

std::optional<int64_t> OpenPasses::first() const {
  if (graphs_.empty()) return std::nullopt;
  return graphs_.begin()->first;
}

std::vector<int64_t> OpenPasses::take_left_out() {
  std::vector<int64_t> left_out;
  for (const auto& [pass, graph] : graphs_) {
    if (graph.expired()) left_out.push_back(pass);
  }
  for (const int64_t pass : left_out) graphs_.erase(pass);
  return left_out;
}

}  // namespace phalanx::pipeline
