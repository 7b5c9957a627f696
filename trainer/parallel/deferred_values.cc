// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/deferred_values.h"

#include <cstdint>
#include <deque>
#include <vector>

#include "trainer/api/modules.h"
#include "trainer/parallel/broadcast_states.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {
namespace {

// As much is sent at a time: enough that no rank waits for the start of the next one.
constexpr int64_t kBytesUnderWay = 64 << 20;

// Storages whose values are on their way from rank 0, in order.
class UnderWay {
 public:
  UnderWay(const Ranks& ranks, const DeferredInit::Filled& filled)
      : ranks_(ranks), filled_(filled) {}

  void start(const c10::StorageImpl* storage, const at::Tensor& values) {
    bytes_ += static_cast<int64_t>(values.nbytes());
    broadcasts_.push_back({storage, values, ranks_.start_broadcast(values)});
    while (bytes_ > kBytesUnderWay && broadcasts_.size() > 1) finish_first();
  }
  void finish() {
    while (!broadcasts_.empty()) finish_first();
  }

 private:
  struct Broadcast {
    const c10::StorageImpl* storage;
    at::Tensor values;
    Pending pending;
  };

  void finish_first() {
    auto& [storage, values, pending] = broadcasts_.front();
    pending.wait();
    bytes_ -= static_cast<int64_t>(values.nbytes());
    if (!filled_(storage, values)) DeferredInit::give_up_memory(values);
    broadcasts_.pop_front();
  }

  const Ranks& ranks_;
  const DeferredInit::Filled& filled_;
  std::deque<Broadcast> broadcasts_;
  int64_t bytes_ = 0;
};

}  // namespace

void broadcast_present(torch::nn::Module& module, const Ranks& ranks, bool with_buffers,
                       const DeferredInit* deferred) {
  std::vector<at::Tensor> states;
  const auto add = [&](const at::Tensor& tensor) {
    if (deferred == nullptr || !deferred->is_pending(tensor)) states.push_back(tensor.detach());
  };
  for (const at::Tensor& parameter : modules::parameters(module)) add(parameter);
  if (with_buffers) {
    for (const at::Tensor& buffer : modules::buffers(module)) add(buffer);
  }
  if (!states.empty()) broadcast_tensors(states, ranks);
}

void draw_on_first_rank(DeferredInit& deferred, const Ranks& ranks,
                        const DeferredInit::Filled& filled) {
  UnderWay under_way(ranks, filled);
  const auto start = [&](const c10::StorageImpl* storage, const at::Tensor& values) {
    under_way.start(storage, values);
    return true;
  };
  if (ranks.is_first()) {
    deferred.fill(start);
  } else {
    deferred.fill_from_elsewhere(start);
  }
  under_way.finish();
}

}  // namespace phalanx
