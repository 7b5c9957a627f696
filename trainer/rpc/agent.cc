// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/agent.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <utility>

#include "trainer/host/local_address.h"
#include "trainer/ranks/collectives/ranks_group.h"
#include "trainer/ranks/failures/call_within.h"
#include "trainer/rpc/agent_state.h"
#include "trainer/rpc/listening_address.h"
#include "trainer/rpc/own_functions.h"
#include "trainer/rpc/reference_state.h"
#include "trainer/rpc/registered.h"
#include "trainer/rpc/worker_names.h"
#include "trainer/tensors/error_text.h"

namespace phalanx::rpc {
namespace {

using Milliseconds = std::chrono::milliseconds;

// LibTorch has one agent a process, and the names of its keys in the store.
std::atomic<bool> is_there_one = false;
std::atomic<int64_t> agents_so_far = 0;

// LibTorch's agents find each other in the ranks' store, by keys that each set of agents has to
// itself (rank 0's number). The store knows no timeout: it never answers where the process that
// serves it is stopped, and an address of a worker that is stopped never comes.
std::unique_ptr<Wire> start_wire(const Ranks& ranks, WireOptions options, WireHooks hooks) {
  const std::string prefix = fmt::format("{}/rpc/{}", ranks.group().name,
                                         ranks.broadcast(std::to_string(agents_so_far++)));
  if (ranks.is_single_rank()) {
    return std::make_unique<Wire>(
        c10::make_intrusive<c10d::PrefixStore>(prefix, c10::make_intrusive<c10d::HashStore>()),
        std::move(options), std::move(hooks));
  }
  auto wire = call_within<std::unique_ptr<Wire>>(
      ranks.timeout(), [prefix, store = ranks.group().store, options = std::move(options),
                        hooks = std::move(hooks)] {
        return std::make_unique<Wire>(
            c10::make_intrusive<c10d::PrefixStore>(prefix, store->clone()), options, hooks);
      });
  if (wire) return *std::move(wire);
  throw CommunicationError(fmt::format(
      "rank {} could not start its RPC agent in {} s: the ranks' store does not answer, or another "
      "rank does not come",
      ranks.rank(), std::chrono::duration<double>(ranks.timeout()).count()));
}

void require_options(const AgentOptions& options) {
  const std::string& problem = RegisteredFunctions::instance().problem();
  if (!problem.empty()) throw std::logic_error(problem);
  if (options.threads < 1) throw std::invalid_argument("an RPC agent needs one thread at least");
  for (const auto& [name, function] : options.functions) {
    if (!is_own_function(name)) continue;
    throw std::invalid_argument(
        fmt::format("the name '{}' of an RPC function is Phalanx's own", name));
  }
}

// The place of this process's agent; given up again where the constructor throws.
class OnlyOne {
 public:
  OnlyOne() {
    if (is_there_one.exchange(true)) {
      throw std::logic_error("this process has an RPC agent already: end that one first");
    }
  }
  OnlyOne(const OnlyOne&) = delete;
  OnlyOne& operator=(const OnlyOne&) = delete;
  ~OnlyOne() {
    if (!is_kept_) is_there_one = false;
  }
  void keep() { is_kept_ = true; }

 private:
  bool is_kept_ = false;
};

}  // namespace

Agent::Agent(const Ranks& ranks, AgentOptions options) : state_(std::make_shared<State>()) {
  require_options(options);
  OnlyOne only_one;
  State& state = *state_;
  state.ranks = ranks;
  state.workers = exchange_worker_names(ranks, options.name);
  state.timeout = options.timeout.value_or(ranks.timeout());
  // They are owned by what the state owns.
  const std::weak_ptr<State> weak = state_;
  const auto self = [weak] {
    auto strong = weak.lock();
    if (!strong) throw std::logic_error("the RPC agent has ended");
    return strong;
  };
  options.functions.merge(own_functions([self] { return self()->served; }));
  state.served = std::make_shared<Served>(std::move(options.functions));
  const WireHooks hooks{
      .serve = [served = state.served](
                   const std::string& function,
                   Values arguments) { return served->call(function, std::move(arguments)); },
      .retain = retain,
      .receive =
          [self](const std::string& owner, int64_t id) {
            return RemoteReference(std::make_shared<RemoteReference::State>(self(), owner, id));
          }};
  const std::string address = ranks.is_single_rank() ? std::string(kLoopbackAddress)
                                                     : listening_address(ranks.group().address);
  // Connections end here: the last to hold the state may be a thread of theirs.
  const auto give_up = [&state] {
    state.is_open = false;
    if (state.wire) state.wire->stop();
  };
  state.is_open = true;
  try {
    state.wire = start_wire(ranks,
                            {.workers = state.workers,
                             .rank = ranks.rank(),
                             .address = address,
                             .threads = options.threads,
                             .timeout = state.timeout},
                            hooks);
    // A worker may be called from here on: by then all have come as far.
    ranks.barrier();
  } catch (const CommunicationError&) {
    give_up();
    throw;
  } catch (const std::exception& error) {
    give_up();
    throw CommunicationError(
        fmt::format("rank {} could not start its RPC agent: {}", ranks.rank(), error_text(error)));
  }
  only_one.keep();
}

Agent::~Agent() {
  if (!state_->is_open.exchange(false)) return;
  state_->wire->stop();
  is_there_one = false;
}

const std::string& Agent::name() const { return state_->name(); }
const std::vector<std::string>& Agent::workers() const { return state_->workers; }
Milliseconds Agent::timeout() const { return state_->timeout; }

Values Agent::call(const std::string& worker, const std::string& function, Values arguments,
                   std::optional<Milliseconds> timeout) const {
  return call_async(worker, function, std::move(arguments), timeout).wait();
}

Future Agent::call_async(const std::string& worker, const std::string& function, Values arguments,
                         std::optional<Milliseconds> timeout) const {
  return state_->call(worker, function, std::move(arguments), timeout);
}

RemoteReference Agent::remote(const std::string& worker, const std::string& function,
                              Values arguments, std::optional<Milliseconds> timeout) const {
  state_->require_open();
  const int64_t id = state_->ranks.rank() << 40 | state_->next_id++;
  if (state_->rank_of(worker) == state_->ranks.rank()) {
    state_->served->make(id, function, std::move(arguments));
    return RemoteReference(std::make_shared<RemoteReference::State>(state_, worker, id));
  }
  const Future made =
      state_->call(worker, kMake, make_arguments(id, function, std::move(arguments)), timeout);
  auto reference = std::make_shared<RemoteReference::State>(state_, worker, id);
  reference->made = made;
  return RemoteReference(std::move(reference));
}

int64_t Agent::kept_values() const { return static_cast<int64_t>(state_->served->values()); }

Future Agent::is_there(const std::string& worker) const {
  return state_->call(worker, kPing, {}, std::nullopt);
}

std::string Agent::silent_workers(Milliseconds patience) const {
  std::vector<std::pair<std::string, Future>> pings;
  for (const std::string& worker : state_->workers) {
    if (worker != state_->name()) {
      pings.emplace_back(worker, state_->call(worker, kPing, {}, patience));
    }
  }
  std::vector<std::string> silent;
  for (const auto& [worker, ping] : pings) {
    try {
      ping.wait();
    } catch (const std::exception&) {
      silent.push_back(fmt::format("{} (rank {})", worker, state_->rank_of(worker)));
    }
  }
  return fmt::format("{}", fmt::join(silent, ", "));
}

void Agent::shutdown() {
  state_->require_open();
  // First nobody begins a call any more, then none is under way.
  state_->ranks.barrier();
  if (const std::string calls = state_->wire->drain(state_->timeout); !calls.empty()) {
    throw CommunicationError(
        fmt::format("RPC calls are under way at the end, beyond the timeout of {} s: {}",
                    std::chrono::duration<double>(state_->timeout).count(), calls));
  }
  state_->ranks.barrier();
  if (!state_->is_open.exchange(false)) return;
  state_->wire->stop();
  is_there_one = false;
}

}  // namespace phalanx::rpc
