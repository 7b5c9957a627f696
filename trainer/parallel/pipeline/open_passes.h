// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace phalanx::pipeline {

/// Passes with gradients that have had no backward pass yet, on this stage.
class OpenPasses {
 public:
  /// A pass has come to its loss. What this returns is kept by the graph of that loss.
  std::shared_ptr<const void> open(int64_t pass);
  /// The backward pass of a pass begins; false: it has had one before.
  bool close(int64_t pass) { return graphs_.erase(pass) > 0; }
  /// The first pass that is open; none: no pass is.
  std::optional<int64_t> first() const;
  /// Passes whose graph is gone without a backward pass; each once.
  std::vector<int64_t> take_left_out();

 private:
  std::map<int64_t, std::weak_ptr<const void>> graphs_;
};

}  // namespace phalanx::pipeline
