// SPDX-License-Identifier: Apache-2.0
// What servers do: they answer lookups while others compute a pass, and take means of gradients.

#include <ATen/core/grad_mode.h>

#include <chrono>
#include <utility>

#include "trainer/parallel/fsdp/after_backward.h"
#include "trainer/parallel/parameter_server/await_ranks.h"
#include "trainer/parallel/remote_embedding/loss_lines.h"
#include "trainer/parallel/remote_embedding/remote_embedding_impl.h"

namespace phalanx {
namespace {

// Throws WorkerLost.
template <class Sent>
void await_round(const rpc::Agent& agent, const char* what,
                 const parameter_server::RankRounds<Sent>& rounds, int64_t round) {
  parameter_server::await_ranks(
      agent, {.what = what,
              .wait = [&](std::chrono::milliseconds time) { return rounds.wait(round, time); },
              .missing = [&] { return rounds.missing(round); }});
}

}  // namespace

// Only once the pass is over everywhere: what follows here may write the tables.
Loss RemoteEmbedding::Impl::serve() {
  // A backward pass that threw has not come to its end.
  is_backward_running = false;
  served->publish(pass);
  await_round(*agent, "results of a pass", served->passes(), pass);
  // All ranks say the same.
  Loss::Parts parts = remote_embedding::zeros_of(served->passes().take(pass).front());
  if (!at::GradMode::is_enabled()) return Loss(std::move(parts));
  std::vector<at::Tensor> values;
  for (const auto& [name, value] : parts) values.push_back(value);
  // The others may differentiate one of several parts alone.
  for (const at::Tensor& value : values) value.requires_grad_(true);
  fsdp::call_after_backward(values, [self = shared_from_this()] { self->begin_backward(); });
  return Loss(std::move(parts)).with_values(values);
}

void RemoteEmbedding::Impl::take_means() {
  const at::NoGradGuard no_grad;
  await_round(*agent, "gradients", served->rounds(), round);
  const std::vector<at::Tensor> means = served->take_means(round);
  for (size_t i = 0; i < tables.size(); ++i) {
    const Table& table = tables[i];
    if (!holds(table)) {
      // A step counts alike, as for a shard without elements.
      if (table.weight().requires_grad()) table.none.mutable_grad() = table.none.detach();
      continue;
    }
    if (!means[i].defined()) continue;
    at::Tensor& gradient = table.weight().mutable_grad();
    if (gradient.defined()) {
      gradient.add_(means[i]);
    } else {
      gradient = means[i];
    }
  }
  for (const Rest& each : rest) {
    if (each.tensor.requires_grad()) each.none.mutable_grad() = each.none.detach();
  }
}

}  // namespace phalanx
