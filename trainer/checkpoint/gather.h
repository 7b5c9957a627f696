#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "trainer/core/ranks.h"
#include "trainer/core/sharded_tensor_view.h"

namespace phalanx {

/// Brings the parts of tensors together on rank 0, one tensor at a time, in the order in which a
/// file has them: rank 0 needs the memory of the largest. Every rank makes one, with views of the
/// same tensors, whose parts cover them; then rank 0 fetches what it writes, the others give, and
/// all finish.
class Gathering {
 public:
  Gathering(const Ranks& ranks, std::vector<ShardedTensorView> views);
  ~Gathering();
  Gathering(Gathering&&) noexcept;

  /// Whole views in their order, on rank 0; those whose parts lie elsewhere have no data.
  const std::vector<ShardedTensorView>& views() const;

  /// On rank 0: the tensor of a view, whole. They come in the order of `views`. Throws
  /// CommunicationError, and std::logic_error where the parts do not cover it.
  at::Tensor fetch(const ShardedTensorView& view);

  /// The other ranks give all their parts. Rank 0, which need not have fetched all, takes the rest
  /// and lets it go, so that they can go on.
  void finish();

 private:
  struct Parts;

  at::Tensor receive(std::size_t i) const;
  void give_all() const;

  Ranks ranks_;
  std::vector<ShardedTensorView> mine_;
  std::vector<ShardedTensorView> whole_;
  std::unique_ptr<Parts> parts_;  ///< None: there is one rank.
  std::size_t next_ = 0;          ///< Fetched so far.
};

}  // namespace phalanx
