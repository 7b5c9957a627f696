// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>

namespace phalanx {

/// Seeds the default generator of the CPU and that of `device`, and these alone: torch::manual_seed
/// would also wake CUDA's hooks.
void seed_everything(uint64_t seed, at::Device device = at::kCPU);

/// States of generators by the type of their device, "cpu" or "cuda": flat uint8 tensors in host
/// memory (torch.get_rng_state's bytes).
using RngStates = std::map<std::string, at::Tensor>;

/// The states of the CPU's default generator and, where it is another device, of `device`'s.
RngStates rng_states(at::Device device = at::kCPU);

/// Puts states from `rng_states` back; a generator without a state among them stays as it is.
/// Throws std::runtime_error for bytes that are not a state.
void set_rng_states(const RngStates& states, at::Device device = at::kCPU);

/// Restores these generators at scope exit, whatever was drawn in between; where the device does
/// not answer any more, it leaves them.
class RngGuard {
 public:
  explicit RngGuard(at::Device device = at::kCPU) : device_(device), states_(rng_states(device)) {}
  RngGuard(const RngGuard&) = delete;
  RngGuard& operator=(const RngGuard&) = delete;
  ~RngGuard();

  /// Calls `action` with the generators as they were before this guard.
  template <class Action>
  void with_former(const Action& action) const {
    const RngGuard present(device_);
    set_rng_states(states_, device_);
    action();
  }

 private:
  at::Device device_;
  RngStates states_;
};

}  // namespace phalanx
