#include "trainer/checkpoint/gather.h"

#include <ATen/ops/empty.h>
#include <c10/util/accumulate.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace phalanx {
namespace {

/// Which elements of each tensor each rank has to give: [rank][view][begin, end).
class Parts {
 public:
  Parts(const Ranks& ranks, const std::vector<ShardedTensorView>& views)
      : views_(static_cast<int64_t>(views.size())) {
    const at::Tensor mine = at::empty({views_, 2}, at::kLong);
    auto* numbers = mine.mutable_data_ptr<int64_t>();
    for (const auto& view : views) {
      // Of those that hold the same, the first gives it.
      const int64_t giver = *std::min_element(view.replicas.begin(), view.replicas.end());
      *numbers++ = view.begin;
      *numbers++ = giver == ranks.rank() ? view.end : view.begin;
    }
    all_ = at::empty({ranks.world_size(), views_, 2}, at::kLong);
    ranks.all_gather(all_, mine);
  }

  int64_t begin(int64_t rank, int64_t view) const { return number(rank, view, 0); }
  int64_t end(int64_t rank, int64_t view) const { return number(rank, view, 1); }

 private:
  int64_t number(int64_t rank, int64_t view, int64_t which) const {
    return all_.const_data_ptr<int64_t>()[(rank * views_ + view) * 2 + which];
  }

  int64_t views_;
  at::Tensor all_;
};

int64_t elements(const ShardedTensorView& view) { return c10::multiply_integers(view.shape); }

// Rank 0's side: a whole tensor from everybody's parts.
at::Tensor receive_whole(const Ranks& ranks, const ShardedTensorView& view, const Parts& parts,
                         int64_t number) {
  const at::Tensor whole = at::empty({elements(view)}, view.local.options().requires_grad(false));
  int64_t covered = 0;
  for (int64_t rank = 0; rank < ranks.world_size(); ++rank) {
    const int64_t begin = parts.begin(rank, number);
    const int64_t size = parts.end(rank, number) - begin;
    covered += size;
    if (size == 0) continue;
    const at::Tensor place = whole.narrow(0, begin, size);
    if (rank == 0) {
      place.copy_(view.local.view(-1));
    } else {
      ranks.receive(place, rank);
    }
  }
  if (covered != whole.numel()) {
    throw std::logic_error(fmt::format("the ranks hold {} of the {} elements of '{}'", covered,
                                       whole.numel(), view.name));
  }
  return whole.view(view.shape);
}

}  // namespace

std::vector<ShardedTensorView> gather_on_first_rank(const Ranks& ranks,
                                                    std::vector<ShardedTensorView> views) {
  if (ranks.is_alone()) return views;
  const Parts parts(ranks, views);
  for (size_t i = 0; i < views.size(); ++i) {
    const auto number = static_cast<int64_t>(i);
    const bool first_has_all =
        parts.begin(0, number) == 0 && parts.end(0, number) == elements(views[i]);
    if (first_has_all) continue;
    if (ranks.is_first()) {
      views[i] = whole_tensor(views[i].name, receive_whole(ranks, views[i], parts, number));
    } else if (parts.end(ranks.rank(), number) > parts.begin(ranks.rank(), number)) {
      ranks.send(views[i].local, 0);
    }
  }
  if (!ranks.is_first()) views.clear();
  return views;
}

}  // namespace phalanx
