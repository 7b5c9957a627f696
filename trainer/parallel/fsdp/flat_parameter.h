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
#include "trainer/parallel/fsdp/device_streams.h"
#include "trainer/parallel/fsdp/flat_layout.h"
#include "trainer/parallel/fsdp/flat_options.h"
#include "trainer/parallel/fsdp/groups.h"
#include "trainer/parallel/fsdp/module_views.h"
#include "trainer/parallel/fsdp/resizable_storage.h"
#include "trainer/parallel/fsdp/shard_gradient.h"
#include "trainer/parallel/fsdp/whole_gradients.h"

namespace phalanx::fsdp {

/// Bytes that a flat parameter holds now.
struct FlatMemory {
  int64_t shard = 0;
  int64_t whole = 0;            ///< Beside the shard, or what is kept of it for the backward pass.
  int64_t gradients = 0;        ///< Not reduced: gradients of the whole.
  int64_t shard_gradients = 0;  ///< Reduced.
};

/// Parameters of one dtype that are gathered, freed and reduced together (pytorch's FlatParameter,
/// by other means: nothing is unflattened). The module sees them through ModuleViews; what the
/// optimizer moves is this rank's shard.
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
  /// Whether the whole is on a device, and the shard and its gradient in host memory.
  bool is_offloaded() const { return types_.is_offloaded; }
  /// Whether each rank has a part only.
  bool is_sharded() const { return groups_.mesh.shards > 1; }
  const std::vector<NamedParameter>& parameters() const { return parameters_; }
  /// Parameter `i` as this rank's optimizer moves it.
  const NamedParameter& local(std::size_t i) const { return locals_[i]; }
  const FlatLayout& layout() const { return layout_; }
  /// Changes when the shard is written to.
  int64_t version() const { return static_cast<int64_t>(shard_._version()); }
  /// Bytes of an element of the whole, and of the shard.
  int64_t compute_size() const { return types_.whole_size(); }
  int64_t storage_size() const { return types_.shard_size(); }
  FlatMemory memory() const;

  /// Fills the whole from all shards, or from what the neighbours have kept of it.
  /// `finish_gather` waits for it. On a device it begins when its memory is free, whatever is
  /// computed meanwhile.
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
  void part_uses() { gradients_.part_uses(); }
  /// Sums the gradients over the shard group: each rank gets its shard. Without gradients here
  /// zeros take part, as other ranks may have some. `finish_reduce` waits, and adds the result to
  /// what earlier reductions left.
  void start_reduce() { shard_gradient_.start_reduce(gradients_.take()); }
  void finish_reduce() { shard_gradient_.finish_reduce(); }
  bool is_reducing() const { return shard_gradient_.is_reducing(); }
  /// Makes the reduced gradients the mean over all ranks; those of copies come in here.
  void start_average() { shard_gradient_.start_average(); }
  void finish_average() { shard_gradient_.finish_average(); }
  bool is_averaging() const { return shard_gradient_.is_averaging(); }

  /// Whether a backward pass has reached parameter `i` since `publish`.
  bool is_used(std::size_t i) const { return gradients_.is_used(i); }
  /// Adds the averaged gradient to that of local parameter `i`, where it is `used` on any rank: an
  /// optimizer's zero_grad is what forgets it. Begins anew. On a device DeviceStreams::reduce has
  /// been joined, or has come to its end where the shard is in host memory.
  void publish(const std::function<bool(std::size_t)>& used);
  /// Forgets gradients: after an error. Waits for no other rank.
  void reset();

 private:
  bool shard_is_whole() const;
  /// Whether what is gathered is the shards as they are.
  bool gathers_shards() const;
  void make_locals();
  void enqueue_gather();
  at::Tensor own_part(const at::Tensor& flat) const;
  void fill_own_part();

  std::vector<NamedParameter> parameters_;
  Groups groups_;
  FlatTypes types_;
  FlatLayout layout_;
  bool requires_grad_;
  std::shared_ptr<const DeviceStreams> streams_;  ///< nullptr on the CPU.
  ResizableStorage flat_;
  ModuleViews views_;
  WholeGradients gradients_;
  ShardGradient shard_gradient_;
  at::Tensor shard_;  ///< What this rank keeps; may be the whole itself.
  at::Tensor kept_;   ///< The neighbours' part of the whole, until it is gathered again.
  std::optional<c10::Event> kept_since_;  ///< On a device: when that was there.
  at::Tensor summoned_;  ///< The whole in the shards' precision, while it is looked at.
  std::vector<NamedParameter> locals_;
  std::optional<Pending> gather_;
};

}  // namespace phalanx::fsdp
