// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/remote_embedding/remote_embedding.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "trainer/api/parameters.h"
#include "trainer/parallel/broadcast_states.h"
#include "trainer/parallel/fsdp/after_backward.h"
#include "trainer/parallel/remote_embedding/remote_embedding_impl.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

using remote_embedding::ServedTables;

// A tensor of this shape, without memory for it: what computes with it shows.
at::Tensor nan_like(const at::Tensor& tensor) {
  const at::Tensor one = tensors::empty({1}, tensor.options());
  one.fill_(std::numeric_limits<double>::quiet_NaN());
  return one.expand(tensor.sizes());
}

/// Has DDP leave the tables out, for the length of a scope.
class WithoutTables {
 public:
  explicit WithoutTables(const std::vector<NamedTable>& tables) {
    for (const NamedTable& table : tables) {
      if (!table.weight.requires_grad()) continue;
      table.weight.set_requires_grad(false);
      trained_.push_back(table.weight);
    }
  }
  WithoutTables(const WithoutTables&) = delete;
  WithoutTables& operator=(const WithoutTables&) = delete;
  ~WithoutTables() {
    for (const at::Tensor& weight : trained_) weight.set_requires_grad(true);
  }

 private:
  std::vector<at::Tensor> trained_;
};

std::vector<int64_t> first_ranks(int64_t count) {
  std::vector<int64_t> ranks(static_cast<size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

void require_host_memory(torch::nn::Module& module) {
  for (const NamedParameter& parameter : local_parameters(module)) {
    if (parameter.tensor.is_cpu()) continue;
    throw std::invalid_argument(
        fmt::format("calls carry tensors in host memory: '{}' is not there", parameter.name));
  }
}

}  // namespace

RemoteEmbedding::RemoteEmbedding(torch::nn::Module& module, const Ranks& ranks,
                                 const RemoteEmbeddingOptions& options)
    : impl_(std::make_shared<Impl>()) {
  Impl& impl = *impl_;
  if (options.servers < 1 || options.servers >= ranks.world_size()) {
    throw std::invalid_argument(fmt::format("{} servers of {} ranks: at least one trains",
                                            options.servers, ranks.world_size()));
  }
  require_host_memory(module);
  const std::vector<NamedTable> tables =
      remote_embedding::chosen_tables(module, options.tables, options.servers);
  const std::vector<int64_t> dealt = remote_embedding::deal_tables(tables, options.servers);
  impl.ranks = ranks;
  impl.servers = options.servers;
  broadcast_states(module, ranks, /*with_buffers=*/true);
  std::vector<at::Tensor> mine(tables.size());
  for (size_t i = 0; i < tables.size(); ++i) {
    const at::Tensor& weight = tables[i].weight;
    Impl::Table& table = impl.tables.emplace_back();
    table.named = tables[i];
    table.holder = impl.trainers() + dealt[i];
    table.none = tensors::empty({0}, weight.options());
    if (impl.holds(table)) {
      mine[i] = weight.variable_data();
    } else if (impl.serves() || !table.is_whole()) {
      table.stand_in = nan_like(weight);
      weight.set_data(table.stand_in);
    }
    if (impl.serves() || table.is_whole()) continue;
    tables[i].table->look_up_by([weak = impl_->weak_from_this(), i](const at::Tensor& numbers) {
      const auto self = weak.lock();
      if (!self) throw std::logic_error("a table whose rows lie elsewhere, without its engine");
      return self->look_up(i, numbers);
    });
  }
  for (NamedParameter& each : local_parameters(module)) {
    const auto is_it = [&](const NamedTable& table) { return table.weight.is_same(each.tensor); };
    if (std::ranges::any_of(tables, is_it)) continue;
    impl.common.push_back(each.tensor.variable_data());
    impl.rest.push_back(
        {.tensor = each.tensor, .none = tensors::empty({0}, each.tensor.options())});
  }
  for (at::Tensor& buffer : detached_buffers(module)) impl.common.push_back(std::move(buffer));
  if (impl.trainers() > 1) {
    const auto group = ranks.subgroup(first_ranks(impl.trainers()), {.name = "ranks that train"});
    const bool has_rest = std::ranges::any_of(
        impl.rest, [](const Impl::Rest& each) { return each.tensor.requires_grad(); });
    const WithoutTables without_tables(tables);
    if (group && has_rest) {
      impl.ddp = std::make_unique<DistributedDataParallel>(module, *group, options.ddp,
                                                           /*sync_module_states=*/false);
    }
  }
  rpc::AgentOptions agent{
      .name = fmt::format("{}{}", impl.serves() ? "server" : "trainer", ranks.rank())};
  if (impl.serves()) {
    impl.served = std::make_unique<ServedTables>(std::move(mine), impl.trainers());
    agent.functions = impl.served->functions();
  }
  impl.agent = std::make_unique<rpc::Agent>(ranks, std::move(agent));
}

// Autograd's graph may hold the rest for longer.
RemoteEmbedding::~RemoteEmbedding() {
  impl_->agent.reset();
  impl_->ddp.reset();
}

Loss RemoteEmbedding::run(c10::function_ref<Loss()> forward, bool synchronize) {
  ++impl_->pass;
  // A backward pass may follow passes without gradients.
  if (at::GradMode::is_enabled()) impl_->synchronize = synchronize;
  return impl_->serves() ? impl_->serve() : impl_->train(forward);
}

std::vector<at::Tensor> RemoteEmbedding::run_tensors(
    c10::function_ref<std::vector<at::Tensor>()> /*forward*/, bool /*synchronize*/) {
  throw std::logic_error(
      "servers of embeddings take part in passes that end in a loss: a task with a training_step "
      "that runs others needs the trainer supervised or parameter_server");
}

std::optional<int64_t> RemoteEmbedding::backward_passes() const { return impl_->backward_passes; }

void RemoteEmbedding::Impl::begin_backward() {
  if (std::exchange(is_backward_running, true)) return;
  fsdp::call_at_end_of_backward([self = shared_from_this()] { self->end_backward(); });
}

void RemoteEmbedding::Impl::end_backward() {
  is_backward_running = false;
  ++backward_passes;
  if (!synchronize) return;
  is_stale = true;
  ++round;
  if (serves()) {
    take_means();
  } else {
    push();
  }
}

void RemoteEmbedding::Impl::with_all(c10::function_ref<void()> action) {
  struct GivenUpAgain {
    const std::vector<Table>& tables;
    ~GivenUpAgain() {
      for (const Table& table : tables) {
        if (table.stand_in.defined()) table.weight().set_data(table.stand_in);
      }
    }
  };
  is_stale = true;
  const GivenUpAgain given_up_again{tables};
  for (const Table& table : tables) {
    const at::Tensor& weight = table.weight();
    if (table.stand_in.defined()) {
      weight.set_data(tensors::empty(weight.sizes(), weight.options()));
    }
    ranks.broadcast(weight.variable_data(), table.holder);
  }
  broadcast_tensors(common, ranks);
  action();
}

void RemoteEmbedding::use(c10::function_ref<void()> action) { impl_->with_all(action); }

void RemoteEmbedding::summon_full_params(const std::function<void()>& look) {
  impl_->with_all(look);
}

void RemoteEmbedding::buffers_changed() {
  if (impl_->ddp) impl_->ddp->buffers_changed();
}

NamedParameter RemoteEmbedding::local(const NamedParameter& parameter) const {
  NamedParameter held = parameter;
  ShardRange shard{.shape = parameter.tensor.sizes().vec(), .replicas = {impl_->ranks.rank()}};
  const auto table = std::ranges::find_if(impl_->tables, [&](const Impl::Table& each) {
    return each.weight().is_same(parameter.tensor);
  });
  const auto other = std::ranges::find_if(
      impl_->rest, [&](const Impl::Rest& each) { return each.tensor.is_same(parameter.tensor); });
  if (table != impl_->tables.end()) {
    if (impl_->holds(*table)) {
      shard.end = parameter.tensor.numel();
    } else {
      held.tensor = table->none;
    }
  } else if (other != impl_->rest.end() && impl_->serves()) {
    held.tensor = other->none;
  } else if (other != impl_->rest.end()) {
    shard.end = parameter.tensor.numel();
    shard.replicas = first_ranks(impl_->trainers());
  } else {
    throw std::invalid_argument(
        fmt::format("the parameter '{}' is not of the engine's model", parameter.name));
  }
  held.shard = std::move(shard);
  return held;
}

// What all ranks that train hold counts once.
GradientNorm RemoteEmbedding::measure_gradients(
    const std::vector<NamedParameter>& parameters) const {
  GradientNorm norm = phalanx::measure_gradients(parameters, [&](const NamedParameter& each) {
    return !each.shard || each.shard->replicas.front() == impl_->ranks.rank();
  });
  const at::Tensor square = norm.total.to(at::kDouble).square();
  impl_->ranks.all_reduce(square);
  norm.total = square.sqrt().to(type_of_norm(gradients_of(parameters)));
  return norm;
}

std::vector<MemoryUse> RemoteEmbedding::memory() const {
  MemoryUse tables{.what = "tables"};
  MemoryUse parameters{.what = "parameters beside tables"};
  MemoryUse gradients{.what = "gradients"};
  const auto add = [&](const at::Tensor& tensor, MemoryUse& to) {
    to.bytes += static_cast<int64_t>(tensor.nbytes());
    if (tensor.grad().defined()) gradients.bytes += static_cast<int64_t>(tensor.grad().nbytes());
  };
  for (const Impl::Table& each : impl_->tables) {
    if (!each.stand_in.defined()) add(each.weight(), tables);
  }
  for (const Impl::Rest& each : impl_->rest) add(each.tensor, parameters);
  return {tables, parameters, gradients};
}

std::vector<std::string> RemoteEmbedding::description() const {
  std::vector<std::string> tables;
  for (const Impl::Table& each : impl_->tables) {
    tables.push_back(fmt::format("{} on rank {} ({})", each.named.name, each.holder,
                                 each.is_whole() ? "whole" : "by rows"));
  }
  return {fmt::format("remote embeddings: {}; {} {}", fmt::join(tables, ", "), impl_->trainers(),
                      impl_->trainers() == 1 ? "rank trains" : "ranks train in DDP")};
}

std::vector<std::string> RemoteEmbedding::reduction_order() const {
  return impl_->ddp ? impl_->ddp->reduction_order() : std::vector<std::string>();
}

void RemoteEmbedding::follow_reduction_order(const std::vector<std::string>& names) {
  if (impl_->ddp) impl_->ddp->follow_reduction_order(names);
}

int64_t RemoteEmbedding::rows_brought() const { return impl_->rows_brought; }

void RemoteEmbedding::close() { impl_->agent->shutdown(); }

}  // namespace phalanx
