#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/core/optimizer.h"
#include "trainer/core/ranks.h"
#include "trainer/core/sharded_tensor_view.h"
#include "trainer/parallel/fsdp/flat_layout.h"
#include "trainer/parallel/fsdp/freeable.h"
#include "trainer/parallel/fsdp/sharding_strategy.h"

namespace phalanx::sharding {

/// The ranks that a model is sharded over, and those that hold copies of it.
struct Groups {
  Ranks world;
  Ranks shard;      ///< This rank's copy: what is gathered and scattered goes here.
  Ranks replicate;  ///< The same shard of other copies: gradients are averaged over them after.
  Mesh mesh;
};

/// Parameters of one dtype that are gathered, freed and reduced together. The module's tensors stay
/// the same objects: their storage is a view of one flat buffer that is filled and freed in place,
/// so that views which autograd saved see the values again (pytorch's FlatParameter, by other
/// means: nothing is unflattened). What the optimizer moves is this rank's shard.
class FlatParameter {
 public:
  /// Takes the values of the parameters, which must be alike on all ranks, and frees the whole
  /// again. All are of one dtype and device and need a gradient, or none does.
  FlatParameter(std::vector<NamedParameter> parameters, const Groups& groups,
                std::shared_ptr<BufferPool> pool);
  FlatParameter(const FlatParameter&) = delete;
  FlatParameter& operator=(const FlatParameter&) = delete;
  ~FlatParameter();

  bool requires_grad() const { return requires_grad_; }
  /// Whether each rank has a part only.
  bool is_sharded() const { return groups_.mesh.shards > 1; }
  const std::vector<NamedParameter>& parameters() const { return parameters_; }
  /// Parameter `i` as this rank's optimizer moves it.
  const NamedParameter& local(std::size_t i) const { return locals_[i]; }
  const FlatLayout& layout() const { return layout_; }

  /// Fills the whole from all shards. `finish_gather` waits for it.
  void start_gather();
  void finish_gather();
  bool is_whole() const { return flat_.is_allocated() && !gather_; }
  bool is_gathering() const { return gather_.has_value(); }
  /// Frees the whole.
  void free();
  /// Makes rank 0's whole, which may have been written to, everybody's values.
  void adopt_whole();

  /// Whether backward passes have left gradients of the whole that are not reduced.
  bool has_gradients() const { return gradients_.defined(); }
  /// Sums the gradients over the shard group: each rank gets its shard. Without gradients here
  /// zeros take part, as other ranks may have some. `finish_reduce` waits, and adds the result to
  /// what earlier reductions left.
  void start_reduce();
  void finish_reduce();
  bool is_reducing() const { return reduce_.has_value(); }
  /// Makes the reduced gradients the mean over all ranks; those of copies come in here.
  void average();

  /// Whether a backward pass has reached parameter `i` since `hand_over`.
  bool is_used(std::size_t i) const { return used_[i]; }
  /// Gives the averaged gradient to local parameter `i`, or none where it is not `used` on any
  /// rank. Begins anew.
  void hand_over(const std::function<bool(std::size_t)>& used);
  /// Forgets gradients and waits for nothing: after an error.
  void reset();

 private:
  struct Hook;

  void point_parameters_into_flat();
  void make_locals();
  void watch_gradients();
  void accumulate(std::size_t i);
  at::Tensor slot(const at::Tensor& flat, std::size_t i) const;
  void keep_own_shard();
  void zero_what_is_missing();

  std::vector<NamedParameter> parameters_;
  Groups groups_;
  FlatLayout layout_;
  bool requires_grad_;
  std::shared_ptr<BufferPool> pool_;
  Freeable flat_;
  at::Tensor shard_;           ///< What this rank keeps; the whole itself where nothing is sharded.
  at::Tensor gradients_;       ///< Of the whole, while there are some.
  at::Tensor reduced_;         ///< This rank's part of the reduction under way.
  at::Tensor shard_gradient_;  ///< The sum of reductions.
  std::vector<NamedParameter> locals_;
  std::vector<bool> touched_;  ///< Has gradients in `gradients_`.
  std::vector<bool> used_;
  std::optional<Pending> gather_;
  std::optional<Pending> reduce_;
  std::vector<std::shared_ptr<Hook>> hooks_;
};

}  // namespace phalanx::sharding
