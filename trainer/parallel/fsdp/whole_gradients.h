// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "trainer/api/optimizer.h"
#include "trainer/parallel/fsdp/flat_layout.h"
#include "trainer/parallel/fsdp/flat_options.h"
#include "trainer/parallel/fsdp/resizable_storage.h"

namespace torch::autograd {
struct Node;
}

namespace phalanx::fsdp {

/// The gradients of the parameters of a flat parameter as autograd hands them over: each is moved
/// into its place in one flat buffer, and gives its own memory up.
class WholeGradients {
 public:
  /// The parameters and their layout outlive it. Parameters that need no gradient get none.
  WholeGradients(const std::vector<NamedParameter>& parameters, const FlatLayout& layout,
                 const FlatTypes& types, std::shared_ptr<BufferPool> pool);
  WholeGradients(const WholeGradients&) = delete;
  WholeGradients& operator=(const WholeGradients&) = delete;

  /// Takes the gradients that arrive from now on. Again after a parameter was of another dtype or
  /// device a while, as it may have forgotten who takes its gradients.
  void watch();
  /// See FlatParameter::part_uses.
  void part_uses();

  /// Whether a backward pass has reached parameter `i` since `forget_uses`.
  bool is_used(std::size_t i) const { return used_[i]; }
  void forget_uses();

  /// Hands the buffer over, zeros where no gradient has come; begins anew.
  at::Tensor take();
  /// What has come so far; undefined: nothing.
  const at::Tensor& buffer() const { return buffer_; }
  /// Forgets all of it, and what the parameters have.
  void reset();

 private:
  void watch(std::size_t i);
  void accumulate(std::size_t i);
  void allocate();

  const std::vector<NamedParameter>& parameters_;
  const FlatLayout& layout_;
  at::TensorOptions options_;
  bool adds_as_autograd_;  ///< In the precision in which autograd would add gradients up.
  std::shared_ptr<BufferPool> pool_;
  at::Tensor buffer_;
  std::vector<bool> touched_;  ///< Has gradients in the buffer.
  std::vector<bool> used_;
  /// What autograd calls with gradients from now on; the parameters know it weakly.
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;
  std::shared_ptr<WholeGradients*> self_ = std::make_shared<WholeGradients*>(this);
};

}  // namespace phalanx::fsdp
