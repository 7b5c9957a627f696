#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace phalanx {

/// Seeds the default CPU generator, and it alone: torch::manual_seed would also wake CUDA's hooks.
void seed_everything(uint64_t seed);

/// The default CPU generator's state, as a flat uint8 tensor (torch.get_rng_state's bytes).
at::Tensor cpu_rng_state();

/// Puts a state from `cpu_rng_state` back. Throws std::runtime_error for bytes that are not one.
void set_cpu_rng_state(const at::Tensor& state);

/// Restores the default CPU generator at scope exit, whatever was drawn in between.
class RngGuard {
 public:
  RngGuard() : state_(cpu_rng_state()) {}
  RngGuard(const RngGuard&) = delete;
  RngGuard& operator=(const RngGuard&) = delete;
  ~RngGuard() { set_cpu_rng_state(state_); }

 private:
  at::Tensor state_;
};

}  // namespace phalanx
