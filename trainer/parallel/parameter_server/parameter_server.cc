// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/parameter_server/parameter_server.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "trainer/api/parameters.h"
#include "trainer/parallel/broadcast_states.h"
#include "trainer/parallel/fsdp/after_backward.h"
#include "trainer/parallel/parameter_server/await_ranks.h"
#include "trainer/parallel/parameter_server/served_parameters.h"
#include "trainer/parallel/parameter_server/sparse_tables.h"
#include "trainer/rpc/agent.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

using parameter_server::Gradients;
using parameter_server::ServedParameters;

constexpr const char* kPull = "parameter_server/pull";
constexpr const char* kPush = "parameter_server/push";
// With updates that do not wait, a pass of training takes the newest values, of this version on.
constexpr int64_t kFirstVersion = 1;

std::string worker_name(int64_t rank, int64_t servers) {
  return fmt::format("{}{}", rank < servers ? "server" : "trainer", rank);
}

}  // namespace

std::vector<int64_t> parameter_server::deal(const std::vector<NamedParameter>& parameters,
                                            int64_t servers) {
  std::vector<int64_t> bytes(static_cast<size_t>(servers));
  std::vector<int64_t> owners;
  for (const NamedParameter& parameter : parameters) {
    const auto least = std::ranges::min_element(bytes);
    *least += static_cast<int64_t>(parameter.tensor.nbytes());
    owners.push_back(least - bytes.begin());
  }
  return owners;
}

struct ParameterServer::Impl : std::enable_shared_from_this<ParameterServer::Impl> {
  /// A trained parameter.
  struct Served {
    at::Tensor tensor;  ///< The module's.
    at::Tensor values;  ///< The same memory, apart from autograd.
    int64_t server = 0;
    at::Tensor none;      ///< What a rank holds that does not serve it.
    at::Tensor averaged;  ///< Mean gradients of earlier backward passes of the step.
  };

  Ranks ranks;
  ParameterServerOptions options;
  std::vector<Served> parameters;
  std::vector<at::Tensor> buffers;
  std::vector<std::string> sparse;           ///< The embeddings whose gradients travel as rows.
  std::unique_ptr<ServedParameters> served;  ///< On a server.
  std::unique_ptr<rpc::Agent> agent;         // Last: its threads use the others.
  int64_t version = 0;
  int64_t round = 0;
  int64_t backward_passes = 0;
  bool synchronize = true;
  bool is_stale = true;       ///< The values may not be the servers'.
  bool are_averaged = false;  ///< The gradients of what is served here.
  bool is_backward_running = false;
  bool was_restored = false;  ///< The weights have been set back since the last pass of training.

  bool is_mine(const Served& parameter) const { return parameter.server == ranks.rank(); }

  std::vector<Served*> of_server(int64_t server) {
    std::vector<Served*> its;
    for (Served& parameter : parameters) {
      if (parameter.server == server) its.push_back(&parameter);
    }
    return its;
  }

  /// What the values are for.
  enum class Use { training, given_values };

  void refresh(Use use);
  void begin_backward();
  void end_backward();
  std::vector<rpc::Future> push();
  void wait_for_gradients();
  void take_means();
};

// Takes the servers' values. Every rank calls it.
void ParameterServer::Impl::refresh(Use use) {
  const at::NoGradGuard no_grad;
  const bool may_be_old = use == Use::training && !options.synchronous;
  ++version;
  if (served) served->publish(version);
  const int64_t wanted = may_be_old ? kFirstVersion : version;
  std::vector<std::pair<int64_t, rpc::Future>> pulls;
  for (int64_t server = 0; server < options.servers; ++server) {
    if (server == ranks.rank()) continue;
    pulls.emplace_back(server, agent->call_async(worker_name(server, options.servers), kPull,
                                                 {.text = std::to_string(wanted)}));
  }
  for (const auto& [server, pull] : pulls) {
    const rpc::Values values = pull.wait();
    const std::vector<Served*> its = of_server(server);
    const size_t expected = its.size() + (server == 0 ? buffers.size() : 0);
    if (values.tensors.size() != expected) {
      throw std::logic_error(fmt::format(
          "worker '{}' (rank {}) serves {} tensors, and {} are expected here: do all ranks train "
          "the same parameters?",
          worker_name(server, options.servers), server, values.tensors.size(), expected));
    }
    auto next = values.tensors.begin();
    for (const Served* parameter : its) parameter->values.copy_(*next++);
    if (server != 0) continue;
    for (const at::Tensor& buffer : buffers) buffer.copy_(*next++);
  }
  // In training the gradients of all ranks follow, which a server with synchronous updates waits
  // for. Otherwise nothing holds it: what it does next may write what another rank still pulls.
  if (use == Use::given_values) ranks.barrier();
}

// What is there of earlier passes is the mean already.
void ParameterServer::Impl::begin_backward() {
  if (std::exchange(is_backward_running, true)) return;
  fsdp::call_at_end_of_backward([self = shared_from_this()] { self->end_backward(); });
  if (!std::exchange(are_averaged, false)) return;
  for (Served& parameter : parameters) {
    if (!is_mine(parameter)) continue;
    at::Tensor& gradient = parameter.tensor.mutable_grad();
    parameter.averaged = gradient;
    gradient.reset();
  }
}

void ParameterServer::Impl::end_backward() {
  is_backward_running = false;
  ++backward_passes;
  if (!synchronize) return;
  is_stale = true;
  ++round;
  const std::vector<rpc::Future> pushes = push();
  if (served) {
    wait_for_gradients();
    take_means();
  }
  rpc::wait_all(pushes);
}

std::vector<rpc::Future> ParameterServer::Impl::push() {
  std::vector<rpc::Future> pushes;
  for (int64_t server = 0; server < options.servers; ++server) {
    Gradients gradients;
    for (Served* parameter : of_server(server)) {
      at::Tensor& gradient = parameter->tensor.mutable_grad();
      gradients.push_back(gradient);
      // A step counts alike, as for a shard without elements.
      if (gradient.defined()) parameter->none.mutable_grad() = parameter->none.detach();
      gradient.reset();
    }
    pushes.push_back(agent->call_async(worker_name(server, options.servers), kPush,
                                       parameter_server::pushed(ranks.rank(), round, gradients)));
  }
  return pushes;
}

void ParameterServer::Impl::wait_for_gradients() {
  parameter_server::await_ranks(
      *agent, {.what = "gradients",
               .wait = [&](std::chrono::milliseconds time) { return served->wait(round, time); },
               .missing = [&] { return served->missing(round); }});
}

void ParameterServer::Impl::take_means() {
  const at::NoGradGuard no_grad;
  Gradients means = served->take(round);
  auto mean = means.begin();
  for (Served* parameter : of_server(ranks.rank())) {
    at::Tensor& earlier = parameter->averaged;
    if (earlier.defined() && mean->defined()) mean->add_(earlier);
    parameter->tensor.mutable_grad() = mean->defined() ? *mean : earlier;
    earlier.reset();
    ++mean;
  }
  are_averaged = true;
}

ParameterServer::ParameterServer(torch::nn::Module& module, const Ranks& ranks,
                                 const ParameterServerOptions& options)
    : impl_(std::make_shared<Impl>()) {
  if (options.servers < 1 || options.servers > ranks.world_size()) {
    throw std::invalid_argument(
        fmt::format("{} parameter servers of {} ranks", options.servers, ranks.world_size()));
  }
  impl_->ranks = ranks;
  impl_->options = options;
  broadcast_states(module, ranks, /*with_buffers=*/true);
  std::vector<NamedParameter> trained = local_parameters(module);
  std::erase_if(trained, [](const NamedParameter& each) { return !each.tensor.requires_grad(); });
  const std::vector<int64_t> servers = parameter_server::deal(trained, options.servers);
  std::vector<at::Tensor> mine;
  for (size_t i = 0; i < trained.size(); ++i) {
    const at::Tensor& tensor = trained[i].tensor;
    if (!tensor.is_cpu()) {
      throw std::invalid_argument("parameter servers keep parameters in host memory: '" +
                                  trained[i].name + "' is not there");
    }
    const at::Tensor values = tensor.variable_data();
    if (servers[i] == ranks.rank()) mine.push_back(values);
    impl_->parameters.push_back({.tensor = tensor,
                                 .values = values,
                                 .server = servers[i],
                                 .none = tensors::empty({0}, tensor.options())});
  }
  impl_->buffers = detached_buffers(module);
  if (options.sparse_embeddings) {
    const std::vector<NamedTable> tables = parameter_server::sparse_tables(module);
    for (const NamedTable& table : tables) impl_->sparse.push_back(table.name);
    parameter_server::make_gradients_sparse(tables, impl_);
  }
  rpc::AgentOptions agent{.name = worker_name(ranks.rank(), options.servers)};
  if (ranks.rank() < options.servers) {
    impl_->served = std::make_unique<ServedParameters>(
        std::move(mine), ranks.is_first() ? impl_->buffers : std::vector<at::Tensor>(),
        ServedParameters::Rules{.ranks = ranks.world_size(), .synchronous = options.synchronous});
    agent.functions = {{kPull, impl_->served->pull()}, {kPush, impl_->served->push()}};
  }
  impl_->agent = std::make_unique<rpc::Agent>(ranks, std::move(agent));
}

// Autograd's graph may hold the rest for longer.
ParameterServer::~ParameterServer() { impl_->agent.reset(); }

void ParameterServer::before_forward(bool synchronize) {
  // A backward pass that threw has not come to its end.
  impl_->is_backward_running = false;
  using Use = Impl::Use;
  if (!at::GradMode::is_enabled()) {
    impl_->refresh(Use::given_values);
    impl_->is_stale = true;
    return;
  }
  impl_->synchronize = synchronize;
  if (!std::exchange(impl_->is_stale, false)) return;
  impl_->refresh(std::exchange(impl_->was_restored, false) ? Use::given_values : Use::training);
}

void ParameterServer::after_forward(std::vector<at::Tensor>& outputs) {
  if (!at::GradMode::is_enabled()) return;
  fsdp::call_after_backward(outputs, [impl = impl_] { impl->begin_backward(); });
}

Loss ParameterServer::run(c10::function_ref<Loss()> forward, bool synchronize) {
  before_forward(synchronize);
  Loss loss = forward();
  std::vector<at::Tensor> values;
  for (const auto& [name, value] : loss.parts()) values.push_back(value);
  after_forward(values);
  return std::move(loss).with_values(values);
}

std::vector<at::Tensor> ParameterServer::run_tensors(
    c10::function_ref<std::vector<at::Tensor>()> forward, bool synchronize) {
  before_forward(synchronize);
  std::vector<at::Tensor> outputs = forward();
  after_forward(outputs);
  return outputs;
}

std::optional<int64_t> ParameterServer::backward_passes() const { return impl_->backward_passes; }

void ParameterServer::use(c10::function_ref<void()> action) {
  impl_->refresh(Impl::Use::given_values);
  impl_->is_stale = true;
  action();
}

void ParameterServer::buffers_changed() { impl_->is_stale = true; }

NamedParameter ParameterServer::local(const NamedParameter& parameter) const {
  NamedParameter held = parameter;
  ShardRange shard{.shape = parameter.tensor.sizes().vec()};
  const auto found = std::ranges::find_if(impl_->parameters, [&](const Impl::Served& served) {
    return served.tensor.is_same(parameter.tensor);
  });
  if (found == impl_->parameters.end()) {
    // What is not trained all ranks hold alike.
    shard.end = parameter.tensor.numel();
    shard.replicas.resize(static_cast<size_t>(impl_->ranks.world_size()));
    std::iota(shard.replicas.begin(), shard.replicas.end(), 0);
  } else {
    shard.replicas = {impl_->ranks.rank()};
    if (impl_->is_mine(*found)) {
      shard.end = parameter.tensor.numel();
    } else {
      held.tensor = found->none;
    }
  }
  held.shard = std::move(shard);
  return held;
}

GradientNorm ParameterServer::measure_gradients(
    const std::vector<NamedParameter>& parameters) const {
  GradientNorm norm = phalanx::measure_gradients(parameters);
  // A rank without gradients of these knows no type that all have.
  const at::Tensor square = norm.total.to(at::kDouble).square();
  impl_->ranks.all_reduce(square);
  norm.total = square.sqrt().to(type_of_norm(gradients_of(parameters)));
  return norm;
}

std::vector<std::string> ParameterServer::description() const {
  std::vector<std::string> lines = {fmt::format(
      "parameter servers: {} of {} ranks, {} updates", impl_->options.servers,
      impl_->ranks.world_size(), impl_->options.synchronous ? "synchronous" : "asynchronous")};
  if (!impl_->sparse.empty()) {
    lines.push_back(fmt::format("sparse gradients: {}", fmt::join(impl_->sparse, ", ")));
  }
  return lines;
}

void ParameterServer::summon_full_params(const std::function<void()>& look) {
  impl_->refresh(Impl::Use::given_values);
  impl_->is_stale = true;
  look();
}

void ParameterServer::weights_restored() {
  // Every rank's pushes of the undone step have come: it waits for their answers.
  if (impl_->served) impl_->served->drop();
  impl_->is_stale = true;
  impl_->was_restored = true;
}

void ParameterServer::close() { impl_->agent->shutdown(); }

}  // namespace phalanx
