// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <utility>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;

constexpr const char* kRunId = "run_id";
constexpr const char* kJob = "job";
constexpr const char* kNode = "node";  // that serves the store
constexpr const char* kLaunched = "launched";
constexpr const char* kCount = "count";  // of agents so far
constexpr const char* kOrder = "order";

constexpr milliseconds kMoment{500};
constexpr milliseconds kPatience{10'000};  // with a first node that is busy

std::string status_key(int64_t agent) { return fmt::format("agent/{}", agent); }

// Another version of the program may write another text: its agent is refused by its version.
AgentStatus status_or_stranger(const std::string& text) {
  try {
    return status_in(text);
  } catch (const std::exception&) {
    return {.node = "unknown", .version = "unknown"};
  }
}

// No other launch has it.
std::string new_job(const AgentSettings& settings) {
  std::random_device entropy;
  return fmt::format("{:08x} at {}:{} on {}", entropy(), settings.host, settings.port,
                     settings.node_name);
}

}  // namespace

Exchange::Exchange(const AgentSettings& settings, const Launched& launched,
                   std::unique_ptr<KeyValueStore> store, bool serves)
    : store_(std::move(store)) {
  if (serves) {
    // The server's word counts, whoever comes first. The last of these tells that all are there.
    store_->set(kJob, new_job(settings));
    store_->set(kNode, settings.node_name);
    store_->set(kLaunched, launched.description);
    store_->set(kRunId, settings.run_id);
  }
  const auto id = store_->get(kRunId, std::min(settings.join_timeout, kPatience));
  if (!id) {
    throw UserError(fmt::format("the store at {}:{} is that of no run: is the endpoint right?",
                                settings.host, settings.port));
  }
  if (*id != settings.run_id) {
    throw UserError(fmt::format("{}:{} serves the run '{}', not '{}' (--rdzv-id)", settings.host,
                                settings.port, *id, settings.run_id));
  }
  const auto text = [this](const char* key) {
    auto found = store_->get(key, kPatience);
    if (!found) throw std::runtime_error(fmt::format("it does not say its '{}'", key));
    return *std::move(found);
  };
  facts_ = {.job = text(kJob), .node = text(kNode), .launched = text(kLaunched)};
  number_ = store_->add(kCount, 1) - 1;
  if (serves) coordinator_.emplace(settings, number_, AgentClock::now());
}

std::string Exchange::swap(const std::string& status) {
  store_->set(status_key(number_), status);
  if (coordinator_) return decide();
  return store_->get(kOrder, milliseconds(0)).value_or("");
}

bool Exchange::is_alone() const { return coordinator_->is_alone(agents_, AgentClock::now()); }

std::string Exchange::decide() {
  const int64_t count = store_->add(kCount, 0);
  for (int64_t agent = 0; agent < count; ++agent) {
    const auto text = store_->get(status_key(agent), milliseconds(0));
    if (text) agents_[agent] = status_or_stranger(*text);
  }
  std::string order = to_text(coordinator_->decide(agents_, AgentClock::now()));
  if (order != order_) store_->set(kOrder, order);
  order_ = order;
  return order;
}

std::optional<std::string> job_in(KeyValueStore& store) { return store.get(kJob, kMoment); }

}  // namespace phalanx
