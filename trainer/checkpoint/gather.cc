#include "trainer/checkpoint/gather.h"

#include <ATen/ops/empty.h>
#include <c10/util/accumulate.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "trainer/checkpoint/safetensors.h"

namespace phalanx {
namespace {

int64_t elements(const ShardedTensorView& view) { return c10::multiply_integers(view.shape); }

}  // namespace

// Which elements of each tensor each rank has to give: [rank][view][begin, end).
struct Gathering::Parts {
  Parts(const Ranks& ranks, const std::vector<ShardedTensorView>& views)
      : count(static_cast<int64_t>(views.size())) {
    const at::Tensor mine = at::empty({count, 2}, at::kLong);
    auto* numbers = mine.mutable_data_ptr<int64_t>();
    for (const auto& view : views) {
      // Of those that hold the same, the first gives it.
      const int64_t giver = *std::min_element(view.replicas.begin(), view.replicas.end());
      *numbers++ = view.begin;
      *numbers++ = giver == ranks.rank() ? view.end : view.begin;
    }
    all = at::empty({ranks.world_size(), count, 2}, at::kLong);
    ranks.all_gather(all, mine);
  }

  int64_t begin(int64_t rank, std::size_t view) const { return number(rank, view, 0); }
  int64_t end(int64_t rank, std::size_t view) const { return number(rank, view, 1); }
  bool first_has_all(const ShardedTensorView& view, std::size_t i) const {
    return begin(0, i) == 0 && end(0, i) == elements(view);
  }

  int64_t number(int64_t rank, std::size_t view, int64_t which) const {
    return all.const_data_ptr<int64_t>()[(rank * count + static_cast<int64_t>(view)) * 2 + which];
  }

  int64_t count;
  at::Tensor all;
};

Gathering::Gathering(const Ranks& ranks, std::vector<ShardedTensorView> views)
    : ranks_(ranks), mine_(std::move(views)) {
  sort_in_file_order(mine_);
  if (!ranks_.is_alone()) parts_ = std::make_unique<Parts>(ranks_, mine_);
  if (!ranks_.is_first()) return;
  whole_ = mine_;
  if (!parts_) return;
  for (std::size_t i = 0; i < whole_.size(); ++i) {
    whole_[i].begin = 0;
    whole_[i].end = elements(whole_[i]);
    if (!parts_->first_has_all(whole_[i], i)) whole_[i].local.reset();
  }
}

Gathering::~Gathering() = default;
Gathering::Gathering(Gathering&&) noexcept = default;

const std::vector<ShardedTensorView>& Gathering::views() const { return whole_; }

at::Tensor Gathering::receive(std::size_t i) const {
  const ShardedTensorView& view = mine_[i];
  const at::Tensor whole = at::empty({elements(view)}, view.local.options().requires_grad(false));
  int64_t covered = 0;
  for (int64_t rank = 0; rank < ranks_.world_size(); ++rank) {
    const int64_t begin = parts_->begin(rank, i);
    const int64_t size = parts_->end(rank, i) - begin;
    covered += size;
    if (size == 0) continue;
    const at::Tensor place = whole.narrow(0, begin, size);
    if (rank == 0) {
      place.copy_(view.local.view(-1));
    } else {
      ranks_.receive(place, rank);
    }
  }
  if (covered != whole.numel()) {
    throw std::logic_error(fmt::format("the ranks hold {} of the {} elements of '{}'", covered,
                                       whole.numel(), view.name));
  }
  return whole.view(view.shape);
}

at::Tensor Gathering::fetch(const ShardedTensorView& view) {
  const std::size_t i = next_++;
  if (i >= whole_.size() || whole_[i].name != view.name) {
    throw std::logic_error(fmt::format("'{}' is fetched out of its turn", view.name));
  }
  return whole_[i].local.defined() ? whole_[i].local : receive(i);
}

void Gathering::give_all() const {
  for (std::size_t i = 0; i < mine_.size(); ++i) {
    if (parts_->first_has_all(mine_[i], i)) continue;
    if (parts_->end(ranks_.rank(), i) > parts_->begin(ranks_.rank(), i)) {
      ranks_.send(mine_[i].local, 0);
    }
  }
}

void Gathering::finish() {
  if (!ranks_.is_first()) return give_all();
  for (; next_ < whole_.size(); ++next_) {
    if (!whole_[next_].local.defined()) receive(next_);
  }
}

}  // namespace phalanx
