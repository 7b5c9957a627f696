// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/agent.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <utility>

#include "trainer/host/local_address.h"
#include "trainer/ranks/collectives/ranks_group.h"
#include "trainer/rpc/agent_state.h"
#include "trainer/rpc/listening_address.h"
#include "trainer/rpc/message.h"
#include "trainer/rpc/own_functions.h"
#include "trainer/rpc/registered.h"
#include "trainer/rpc/rpc_error.h"
#include "trainer/tensors/error_text.h"

namespace phalanx::rpc {
namespace {

using Milliseconds = std::chrono::milliseconds;

// LibTorch has one agent a process, and the names of its keys in the store.
std::atomic<bool> is_there_one = false;
std::atomic<int64_t> agents_so_far = 0;
// LibTorch's autograd keeps the rank of a process's first agent until the process ends.
constexpr int64_t kNoRank = -1;
std::atomic<int64_t> rank_of_process = kNoRank;

// LibTorch takes no other (WorkerInfo), and says so on the worker that has it only.
bool is_worker_name(const std::string& name) {
  constexpr size_t kMostBytes = 127;
  return !name.empty() && name.size() <= kMostBytes &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
             "-_:") == std::string::npos;
}

// Every rank's name. All ranks refuse what one of them cannot be.
std::vector<std::string> exchange_names(const Ranks& ranks, const std::string& name) {
  const std::string own = name.empty() ? fmt::format("worker{}", ranks.rank()) : name;
  std::vector<std::string> names =
      ranks.all_gather(fmt::format("{} {}", rank_of_process.load(), own));
  std::set<std::string> seen;
  int64_t rank = 0;
  for (std::string& each : names) {
    const int64_t before = std::stoll(each);
    each.erase(0, each.find(' ') + 1);
    if (before != kNoRank && before != rank) {
      throw std::logic_error(fmt::format(
          "the process of RPC worker '{}' (rank {}) was rank {} in an earlier agent: LibTorch "
          "keeps the rank until the process ends",
          each, rank, before));
    }
    ++rank;
    if (!is_worker_name(each)) {
      throw std::invalid_argument(fmt::format(
          "an RPC worker cannot be named '{}': use letters, digits, '-', '_' and ':', 127 at most",
          each));
    }
    if (seen.insert(each).second) continue;
    throw std::invalid_argument(fmt::format("two RPC workers are named '{}'", each));
  }
  return names;
}

// Keys of their own for this set of agents, by rank 0's number.
c10::intrusive_ptr<c10d::Store> store_for(const Ranks& ranks) {
  const std::string number = ranks.broadcast(std::to_string(agents_so_far++));
  c10::intrusive_ptr<c10d::Store> store;
  if (ranks.is_single_rank()) {
    store = c10::make_intrusive<c10d::HashStore>();
  } else {
    store = ranks.group().store->clone();
  }
  return c10::make_intrusive<c10d::PrefixStore>(
      fmt::format("{}/rpc/{}", ranks.group().name, number), std::move(store));
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

int64_t Agent::State::rank_of(const std::string& worker) const {
  const auto found = std::ranges::find(workers, worker);
  if (found != workers.end()) return found - workers.begin();
  throw std::invalid_argument(
      fmt::format("there is no RPC worker '{}'; there are: {}", worker, fmt::join(workers, ", ")));
}

void Agent::State::require_open() const {
  if (!is_open) throw std::logic_error("the RPC agent has ended");
}

Future Agent::State::call(const std::string& worker, const std::string& function, Values arguments,
                          std::optional<Milliseconds> call_timeout) const {
  require_open();
  const int64_t to = rank_of(worker);
  if (to != ranks.rank()) {
    return wire->call(to, function, std::move(arguments), call_timeout.value_or(timeout));
  }
  try {
    const Milliseconds limit = call_timeout.value_or(timeout);
    const WorkerLost late = not_answered(worker_text(worker, to), function, limit);
    return served->call(function, std::move(arguments))
        .within(limit, std::make_exception_ptr(late));
  } catch (...) {
    const Promise promise;
    promise.fail(std::current_exception());
    return promise.future();
  }
}

Agent::Agent(const Ranks& ranks, AgentOptions options) : state_(std::make_shared<State>()) {
  require_options(options);
  OnlyOne only_one;
  State& state = *state_;
  state.ranks = ranks;
  state.workers = exchange_names(ranks, options.name);
  rank_of_process = ranks.rank();
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
    state.wire = std::make_unique<Wire>(store_for(ranks),
                                        WireOptions{.workers = state.workers,
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
  if (!state_->wire->drain(state_->timeout)) {
    throw CommunicationError("RPC calls are under way at the end, beyond the timeout");
  }
  state_->ranks.barrier();
  if (!state_->is_open.exchange(false)) return;
  state_->wire->stop();
  is_there_one = false;
}

}  // namespace phalanx::rpc
