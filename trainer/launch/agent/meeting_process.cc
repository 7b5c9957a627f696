// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/meeting_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/host/local_address.h"
#include "trainer/launch/agent/agent_messages.h"
#include "trainer/launch/agent/coordinator.h"
#include "trainer/launch/agent/packets.h"
#include "trainer/ranks/failures/call_within.h"
#include "trainer/ranks/stores/group_store.h"
#include "trainer/ranks/stores/key_value_store.h"
#include "trainer/ranks/stores/tcp_store.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

using State = AgentStatus::State;
using Word = MeetingWord;

constexpr const char* kRunId = "run_id";
constexpr const char* kCount = "count";  // of agents so far
constexpr const char* kOrder = "order";

// The store's host answers about this many agents a second, whatever their number.
constexpr int64_t kLooksPerSecond = 320;

std::string status_key(int64_t agent) { return fmt::format("agent/{}", agent); }

// Another version of the program may write another text: its agent is refused by its version.
AgentStatus status_or_stranger(const std::string& text) {
  try {
    return status_in(text);
  } catch (const std::exception&) {
    return {.node = "unknown", .version = "unknown"};
  }
}

/// What is asked of the store in one go. Shared with a call that may never come back.
class Exchange {
 public:
  Exchange(const AgentSettings& settings, std::unique_ptr<KeyValueStore> store, bool serves)
      : store_(std::move(store)) {
    // The server's word counts, whoever comes first.
    if (serves) store_->set(kRunId, settings.run_id);
    const auto id = store_->get(kRunId, settings.join_timeout);
    if (!id) {
      throw UserError(fmt::format("the store at {}:{} is that of no run: is the endpoint right?",
                                  settings.host, settings.port));
    }
    if (*id != settings.run_id) {
      throw UserError(fmt::format("{}:{} serves the run '{}', not '{}' (--rdzv-id)", settings.host,
                                  settings.port, *id, settings.run_id));
    }
    number_ = store_->add(kCount, 1) - 1;
    if (serves) coordinator_.emplace(settings, number_, Coordinator::Clock::now());
  }

  int64_t number() const { return number_; }

  // Writes the agent's status and returns the order, empty before the first one.
  std::string swap(const std::string& status) {
    store_->set(status_key(number_), status);
    if (coordinator_) return decide();
    return store_->get(kOrder, std::chrono::milliseconds(0)).value_or("");
  }

  // For the process that serves the store.
  bool is_alone() const { return coordinator_->is_alone(agents_, Coordinator::Clock::now()); }

 private:
  std::string decide() {
    const int64_t count = store_->add(kCount, 0);
    for (int64_t agent = 0; agent < count; ++agent) {
      const auto text = store_->get(status_key(agent), std::chrono::milliseconds(0));
      if (text) agents_[agent] = status_or_stranger(*text);
    }
    std::string order = to_text(coordinator_->decide(agents_, Coordinator::Clock::now()));
    if (order != order_) store_->set(kOrder, order);
    order_ = order;
    return order;
  }

  std::unique_ptr<KeyValueStore> store_;
  std::optional<Coordinator> coordinator_;
  Coordinator::Agents agents_;
  std::string order_;
  int64_t number_ = -1;
};

class MeetingProcess {
 public:
  MeetingProcess(const AgentSettings& settings, bool serves, Descriptor agent)
      : settings_(settings), serves_(serves), agent_(std::move(agent)) {}

  void run(std::optional<Listener> listener) {
    try {
      join(listener);
      ::prctl(PR_SET_PDEATHSIG, 0);  // it outlives its agent, to report the death
      tell({Word::Kind::number, std::to_string(exchange_->number())});
      while (!has_left_) {
        wait();
        hear_agent();
        exchange();
      }
      if (serves_ && !was_killed_) wait_for_others();
    } catch (const UserError& error) {
      tell({Word::Kind::refused, error.what()});
    } catch (const std::exception& error) {
      tell({Word::Kind::lost, fmt::format("lost the store of the run at {}:{}: {}", settings_.host,
                                          settings_.port, error_text(error))});
    }
  }

 private:
  void join(const std::optional<Listener>& listener) {
    show_only_errors_of_c10d();
    const StorePlace place{.host = listener ? own_host() : settings_.host,
                           .port = settings_.port,
                           .setting = "the endpoint"};
    require_known_host(place);
    wait_for_route(place, settings_.join_timeout);
    StoreServer server{.is_here = serves_};
    if (listener) server.listen_fd = listener->socket.number();
    c10::intrusive_ptr<c10d::Store> store;
    try {
      store = open_tcp_store(place, server, settings_.join_timeout);
    } catch (const std::exception& error) {
      throw UserError(fmt::format(
          "found no store of the run at {}:{} in {} s: is the first node started, and is the "
          "endpoint right? ({})",
          settings_.host, settings_.port,
          std::chrono::duration<double>(settings_.join_timeout).count(), error_text(error)));
    }
    exchange_ = std::make_shared<Exchange>(
        settings_,
        make_key_value_store(c10::make_intrusive<c10d::PrefixStore>("agents", std::move(store))),
        serves_);
  }

  // It listens there, whatever the endpoint's name means on this host.
  std::string own_host() const {
    if (!settings_.local_address.empty()) return settings_.local_address;
    return settings_.max_nodes == 1 ? settings_.host : kLoopbackAddress;
  }

  // A word of the agent ends it early.
  void wait() {
    pollfd word{agent_.number(), POLLIN, 0};
    ::poll(&word, 1, static_cast<int>(interval().count()));
  }

  std::chrono::milliseconds interval() const {
    const std::chrono::milliseconds fair(1000 * members_ / kLooksPerSecond);
    const auto longest = settings_.keep_alive_timeout / 3;
    return std::min(std::max(settings_.monitor_interval, fair), longest);
  }

  void hear_agent() {
    std::string packet;
    for (;;) {
      const ReadResult result = read_packet(agent_, packet);
      if (result == ReadResult::nothing_yet) return;
      if (result == ReadResult::end) {
        was_killed_ = status_.state != State::left;
        status_.state = State::left;
        has_left_ = true;
        return;
      }
      status_ = status_in(packet);
      is_introduced_ = true;
    }
  }

  void exchange() {
    if (!is_introduced_) return;
    status_.beat += 1;
    const auto order = call_within<std::string>(
        settings_.keep_alive_timeout,
        [exchange = exchange_, status = to_text(status_)] { return exchange->swap(status); });
    if (!order) throw std::runtime_error("it has stopped answering");
    if (*order == order_ || order->empty()) return;
    order_ = *order;
    const Order news = order_in(order_);
    members_ = std::ssize(news.members);
    const auto refusal = news.refused.find(exchange_->number());
    if (refusal != news.refused.end()) throw UserError(refusal->second);
    tell({Word::Kind::order, order_});
  }

  // They learn the end of the run from this store.
  void wait_for_others() {
    const auto end = std::chrono::steady_clock::now() + settings_.keep_alive_timeout;
    while (!exchange_->is_alone() && std::chrono::steady_clock::now() < end) {
      ::poll(nullptr, 0, static_cast<int>(interval().count()));
      exchange();
    }
  }

  void tell(const Word& word) { write_packet(agent_, to_packet(word)); }

  const AgentSettings& settings_;
  bool serves_;
  Descriptor agent_;
  std::shared_ptr<Exchange> exchange_;
  AgentStatus status_;
  bool is_introduced_ = false;
  bool has_left_ = false;
  bool was_killed_ = false;  ///< The agent, which says when it leaves.
  std::string order_;
  int64_t members_ = 0;
};

// The agent decides what a signal means. The terminal's go to all of its processes.
void leave_signals_to_agent() {
  ::setpgid(0, 0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP, SIGQUIT}) {
    std::signal(signal, SIG_IGN);
  }
}

}  // namespace

void run_meeting(const AgentSettings& settings, std::optional<Listener> listener,
                 Descriptor agent) {
  leave_signals_to_agent();
  MeetingProcess process(settings, listener.has_value(), std::move(agent));
  process.run(std::move(listener));
  // Threads that wait for a store which is gone must not hold this process.
  ::_exit(0);
}

}  // namespace phalanx
