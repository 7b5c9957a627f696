// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/agent_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <stdexcept>

#include "trainer/rpc/message.h"
#include "trainer/rpc/own_functions.h"
#include "trainer/rpc/rpc_error.h"

namespace phalanx::rpc {

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
                          std::optional<std::chrono::milliseconds> call_timeout) const {
  require_open();
  const int64_t to = rank_of(worker);
  if (to != ranks.rank()) {
    return wire->call(to, function, std::move(arguments), call_timeout.value_or(timeout));
  }
  try {
    const std::chrono::milliseconds limit = call_timeout.value_or(timeout);
    const WorkerLost late = not_answered(worker_text(worker, to), function, limit);
    return served->call(function, std::move(arguments))
        .within(limit, std::make_exception_ptr(late));
  } catch (...) {
    const Promise promise;
    promise.fail(std::current_exception());
    return promise.future();
  }
}

void Agent::State::release(const std::string& owner, int64_t id) const {
  // Nobody waits for it: an owner that is gone keeps nothing.
  [[maybe_unused]] const Future released =
      call(owner, kRelease, {.text = std::to_string(id)}, std::nullopt);
}

}  // namespace phalanx::rpc
