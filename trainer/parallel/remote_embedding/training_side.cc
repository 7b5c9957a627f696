// SPDX-License-Identifier: Apache-2.0
// What ranks do that train: they look up rows in a forward pass, and push their gradients.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_unique2.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <fmt/format.h>

#include <optional>
#include <stdexcept>
#include <utility>

#include "trainer/parallel/fsdp/after_backward.h"
#include "trainer/parallel/remote_embedding/loss_lines.h"
#include "trainer/parallel/remote_embedding/remote_embedding_impl.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

using remote_embedding::TableGradient;
using remote_embedding::TableGradients;

/// Has lookups go to the servers, for the length of a scope.
class InPass {
 public:
  explicit InPass(bool& is_in_pass) : is_in_pass_(is_in_pass) { is_in_pass_ = true; }
  InPass(const InPass&) = delete;
  InPass& operator=(const InPass&) = delete;
  ~InPass() { is_in_pass_ = false; }

 private:
  bool& is_in_pass_;
};

// `unique` ascends.
void require_rows(const at::Tensor& unique, const NamedTable& table) {
  if (unique.numel() == 0) return;
  const int64_t rows = table.weight.size(0);
  const auto least = unique.select(0, 0).item<int64_t>();
  const auto most = unique.select(0, -1).item<int64_t>();
  if (least >= 0 && most < rows) return;
  throw std::out_of_range(fmt::format("row {} of '{}' was looked up, which has rows 0 to {}",
                                      least < 0 ? least : most, table.name, rows - 1));
}

}  // namespace

// What a table's gradient would be on this rank: passes add to it one after the other.
std::optional<TableGradient> RemoteEmbedding::Impl::gradient_of(
    int64_t table, const std::vector<Brought>& brought) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> numbers;
  std::vector<at::Tensor> gradients;
  for (const Brought& each : brought) {
    // A pass that no backward pass came to has none.
    if (!each.rows.grad().defined()) continue;
    numbers.push_back(each.numbers);
    gradients.push_back(each.rows.grad());
  }
  if (gradients.empty()) return std::nullopt;
  if (gradients.size() == 1) {
    return TableGradient{.table = table, .numbers = numbers[0], .gradient = gradients[0]};
  }
  const auto [unique, places, counts] =
      at::_unique2(at::cat(numbers), /*sorted=*/true, /*return_inverse=*/true);
  at::Tensor sum = tensors::zeros({unique.size(0), gradients[0].size(1)}, gradients[0].options());
  int64_t begin = 0;
  for (const at::Tensor& gradient : gradients) {
    sum.index_add_(0, places.narrow(0, begin, gradient.size(0)), gradient);
    begin += gradient.size(0);
  }
  return TableGradient{.table = table, .numbers = unique, .gradient = sum};
}

Loss RemoteEmbedding::Impl::train(c10::function_ref<Loss()> forward) {
  // A backward pass that threw has not come to its end.
  is_backward_running = false;
  forget_gone_passes();
  const bool trains = at::GradMode::is_enabled();
  if (!trains || is_stale) bring_whole_tables();
  // What follows a pass without gradients may write them.
  is_stale = !trains;
  Loss loss = [&] {
    const InPass in_pass(is_in_pass);
    return ddp ? ddp->run(forward, synchronize) : forward();
  }();
  tell_servers(loss);
  if (!trains) return loss;
  std::vector<at::Tensor> values;
  for (const auto& [name, value] : loss.parts()) values.push_back(value);
  fsdp::call_after_backward(values, [self = shared_from_this()] { self->begin_backward(); });
  return std::move(loss).with_values(values);
}

at::Tensor RemoteEmbedding::Impl::look_up(size_t number, const at::Tensor& numbers) {
  Table& table = tables[number];
  // A backward pass computes units again whose activations were not kept.
  if (!is_in_pass && !is_backward_running) return at::embedding(table.weight(), numbers);
  const auto [unique, places, counts] =
      at::_unique2(numbers, /*sorted=*/true, /*return_inverse=*/true);
  require_rows(unique, table.named);
  const rpc::Values answer =
      agent->call(worker(table.holder), remote_embedding::kLookUp,
                  remote_embedding::look_up_call(pass, static_cast<int64_t>(number), unique));
  at::Tensor rows = answer.tensors.at(0).detach();
  if (rows.dim() != 2 || rows.size(0) != unique.size(0) || rows.size(1) != table.weight().size(1)) {
    throw std::logic_error(
        fmt::format("worker '{}' has a table '{}' of another width: do all "
                    "ranks train the same model?",
                    worker(table.holder), table.named.name));
  }
  rows_brought += rows.size(0);
  if (at::GradMode::is_enabled() && table.weight().requires_grad()) {
    rows.requires_grad_(true);
    table.brought.push_back({.numbers = unique, .rows = rows});
  }
  return at::embedding(rows, places);
}

void RemoteEmbedding::Impl::bring_whole_tables() {
  const at::NoGradGuard no_grad;
  std::vector<std::pair<const Table*, rpc::Future>> brought;
  for (size_t i = 0; i < tables.size(); ++i) {
    const Table& table = tables[i];
    if (!table.is_whole()) continue;
    brought.emplace_back(
        &table, agent->call_async(worker(table.holder), remote_embedding::kLookUp,
                                  remote_embedding::look_up_call(pass, static_cast<int64_t>(i),
                                                                 /*numbers=*/{})));
  }
  for (const auto& [table, values] : brought) {
    table->weight().variable_data().copy_(values.wait().tensors.at(0));
  }
}

void RemoteEmbedding::Impl::tell_servers(const Loss& loss) const {
  const std::string lines = remote_embedding::lines_of(loss);
  std::vector<rpc::Future> told;
  for (int64_t server = trainers(); server < ranks.world_size(); ++server) {
    told.push_back(
        agent->call_async(worker(server), remote_embedding::kPassIsOver,
                          remote_embedding::pass_is_over_call(ranks.rank(), pass, lines)));
  }
  rpc::wait_all(told);
}

// Autograd's graph holds the leaves of its passes.
void RemoteEmbedding::Impl::forget_gone_passes() {
  for (Table& table : tables) {
    std::erase_if(table.brought, [](const Brought& each) {
      return !each.rows.grad().defined() && each.rows.use_count() == 1;
    });
  }
}

void RemoteEmbedding::Impl::push() {
  std::vector<TableGradients> of_servers(static_cast<size_t>(servers));
  for (size_t i = 0; i < tables.size(); ++i) {
    Table& table = tables[i];
    TableGradients& gradients = of_servers[static_cast<size_t>(table.holder - trainers())];
    const auto number = static_cast<int64_t>(i);
    if (auto of_rows = gradient_of(number, table.brought)) {
      gradients.push_back(*std::move(of_rows));
    }
    // Backward passes of these may follow, of other losses or of the same graph.
    for (const Impl::Brought& each : table.brought) each.rows.mutable_grad().reset();
    at::Tensor& gradient = table.weight().mutable_grad();
    if (gradient.defined()) gradients.push_back({.table = number, .gradient = gradient});
    gradient.reset();
    // A step counts alike, as for a shard without elements.
    if (table.weight().requires_grad()) table.none.mutable_grad() = table.none.detach();
  }
  std::vector<rpc::Future> pushes;
  for (int64_t server = 0; server < servers; ++server) {
    pushes.push_back(agent->call_async(
        worker(trainers() + server), remote_embedding::kPush,
        remote_embedding::push_call(ranks.rank(), round, of_servers[static_cast<size_t>(server)])));
  }
  rpc::wait_all(pushes);
}

}  // namespace phalanx
