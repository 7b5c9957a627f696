// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/api/optimizer.h"
#include "trainer/api/sharded_tensor_view.h"
#include "trainer/parallel/fsdp/flat_layout.h"
#include "trainer/parallel/fsdp/groups.h"
#include "trainer/parallel/fsdp/resizable_storage.h"
#include "trainer/parallel/fsdp/window.h"
#include "trainer/tensors/transfer_stream.h"

namespace torch::autograd {
struct Node;
}

namespace phalanx::fsdp {

/// In what precision and where a flat parameter lives; none: as its parameters are.
struct FlatOptions {
  std::optional<at::ScalarType> storage;  ///< Of the shard, which the optimizer moves.
  std::optional<at::ScalarType> compute;  ///< Of the whole, which is gathered.
  std::optional<at::ScalarType> reduce;   ///< Of gradients on their way; none: as the whole.
  std::optional<at::Device> device;       ///< Of the whole.
  bool offload = false;                   ///< The shard and its gradient are in host memory.
  bool keep_low_precision_grads = false;  ///< The shard's gradient stays in `reduce`.
};

/// Bytes that a flat parameter holds now.
struct FlatMemory {
  int64_t shard = 0;
  int64_t whole = 0;            ///< Beside the shard, or what is kept of it for the backward pass.
  int64_t gradients = 0;        ///< Of the whole, not reduced.
  int64_t shard_gradients = 0;  ///< Reduced.
};

/// Parameters of one dtype that are gathered, freed and reduced together. The module's tensors stay
/// the same objects: each shows its place in one flat buffer while that is whole, so that views
/// which autograd saved see the values again (pytorch's FlatParameter, by other means: nothing is
/// unflattened); while it is not, reading one throws c10::Error that names it. What the optimizer
/// moves is this rank's shard.
class FlatParameter {
 public:
  /// All parameters are of one dtype and need a gradient, or none does. Their values are still to
  /// be taken; the tensors have no memory afterwards, but where each rank keeps the whole.
  FlatParameter(std::vector<NamedParameter> parameters, const Groups& groups,
                std::shared_ptr<BufferPool> pool, const FlatOptions& options);
  FlatParameter(const FlatParameter&) = delete;
  FlatParameter& operator=(const FlatParameter&) = delete;
  ~FlatParameter();

  /// Takes this rank's part of parameter `i`'s values: a tensor with all its elements.
  void take(std::size_t i, const at::Tensor& values);

  bool requires_grad() const { return requires_grad_; }
  /// Whether each rank has a part only.
  bool is_sharded() const { return groups_.mesh.shards > 1; }
  const std::vector<NamedParameter>& parameters() const { return parameters_; }
  /// Parameter `i` as this rank's optimizer moves it.
  const NamedParameter& local(std::size_t i) const { return locals_[i]; }
  const FlatLayout& layout() const { return layout_; }
  /// Bytes of an element of the whole, and of the shard.
  int64_t compute_size() const { return static_cast<int64_t>(c10::elementSize(compute_)); }
  int64_t storage_size() const { return static_cast<int64_t>(c10::elementSize(storage_)); }
  FlatMemory memory() const;

  /// Fills the whole from all shards, or from what the neighbours have kept of it.
  /// `finish_gather` waits for it.
  void start_gather();
  void finish_gather();
  /// Whether the whole has memory: it is there, or on its way.
  bool is_gathered() const { return flat_.is_allocated(); }
  bool is_whole() const { return is_gathered() && !gather_; }
  /// Frees the whole, except this rank's part of it where the neighbours of
  /// `Groups::post_forward` keep it for the backward pass.
  void free_after_forward();
  /// Frees all but the shard.
  void free();

  /// Lets the parameters be the whole in the shards' own precision, until `end_summon`; with
  /// `write_back` what was written into rank 0's becomes everybody's values. Without it nothing
  /// must be written: where each rank keeps the whole it would stay.
  void begin_summon();
  void end_summon(bool write_back);

  /// Lets the gradients of the uses so far arrive apart from those of later ones: autograd would
  /// hold the first until the last is there, and then need memory for both and their sum. A tied
  /// embedding's are as large as all else that is not reduced. Not where that would be seen: sums
  /// in another precision or order than autograd's, and an author's hooks, which get the sum.
  void part_uses();
  /// Sums the gradients over the shard group: each rank gets its shard. Without gradients here
  /// zeros take part, as other ranks may have some. `finish_reduce` waits, and adds the result to
  /// what earlier reductions left.
  void start_reduce();
  void finish_reduce();
  bool is_reducing() const { return reduce_.has_value(); }
  /// Makes the reduced gradients the mean over all ranks; those of copies come in here.
  void start_average();
  void finish_average();
  bool is_averaging() const { return average_.has_value(); }

  /// Whether a backward pass has reached parameter `i` since `publish`.
  bool is_used(std::size_t i) const { return used_[i]; }
  /// Adds the averaged gradient to that of local parameter `i`, where it is `used` on any rank: an
  /// optimizer's zero_grad is what forgets it. Begins anew.
  void publish(const std::function<bool(std::size_t)>& used);
  /// Forgets gradients and waits for nothing: after an error.
  void reset();

 private:
  at::TensorOptions whole_options() const;
  at::TensorOptions shard_options() const;
  bool shard_is_whole() const;
  void point_parameters_into(const at::Tensor& flat);
  void point_parameters_back();
  void make_windows();
  void open_windows();
  void close_windows();
  void make_locals();
  void watch_gradient(std::size_t i);
  void watch_gradient_anew(std::size_t i);
  void accumulate(std::size_t i);
  at::Tensor slot(const at::Tensor& flat, std::size_t i) const;
  at::Tensor own_part(const at::Tensor& flat) const;
  bool is_offloaded() const { return shard_.device() != device_; }
  void fill_own_part();
  at::Tensor take_reduced();
  void zero_what_is_missing();
  double divide_before_reduction() const;

  std::vector<NamedParameter> parameters_;
  Groups groups_;
  FlatOptions options_;
  at::ScalarType storage_;
  at::ScalarType compute_;
  at::ScalarType reduction_;
  at::Device device_;
  FlatLayout layout_;
  bool requires_grad_;
  std::shared_ptr<BufferPool> pool_;
  ResizableStorage flat_;
  std::vector<Window> windows_;  ///< On `flat_`, one a parameter; none where it is never given up.
  bool are_open_ = false;        ///< The windows.
  at::Tensor shard_;             ///< What this rank keeps; may be the whole itself.
  at::Tensor kept_;              ///< The neighbours' part of the whole, until it is gathered again.
  at::Tensor summoned_;          ///< The whole in the shards' precision, while it is looked at.
  at::Tensor gradients_;         ///< Of the whole, while there are some.
  at::Tensor reduced_;           ///< This rank's part of the reduction under way.
  at::Tensor averaged_;          ///< What is being averaged over copies.
  at::Tensor shard_gradient_;    ///< The sum of reductions.
  std::vector<NamedParameter> locals_;
  std::vector<bool> touched_;  ///< Has gradients in `gradients_`.
  std::vector<bool> used_;
  std::optional<TransferStream> transfers_;  ///< Where the shards are not on the device.
  std::optional<Pending> gather_;
  std::optional<Pending> reduce_;
  std::optional<Pending> average_;
  /// What autograd calls with gradients from now on; the parameters know it weakly.
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;
  std::shared_ptr<FlatParameter*> self_ = std::make_shared<FlatParameter*>(this);
};

}  // namespace phalanx::fsdp
