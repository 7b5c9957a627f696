// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/agent_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "trainer/launch/agent/endpoint.h"

namespace phalanx {
namespace {

// LOGLEVEL is torchrun's.
bool tells_details() {
  const char* level = std::getenv("LOGLEVEL");
  return level != nullptr &&
         (std::string_view(level) == "INFO" || std::string_view(level) == "DEBUG");
}

// Ranks may run meanwhile: an outlet that is gone must not end them.
template <class... Arguments>
void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  std::fputs(fmt::format(format, std::forward<Arguments>(arguments)...).c_str(), stderr);
}

}  // namespace

std::string AgentScreen::endpoint() const {
  return fmt::format("{}:{}", settings_.host, settings_.port);
}

void AgentScreen::tell_waiting(const std::string& what, const std::string& why) {
  if (told_waiting_ == why) return;
  told_waiting_ = why;
  say("{}{}{}\n", what, why.empty() ? "" : ": ", why);
}

void AgentScreen::waits_for_first_node(const std::string& why) {
  tell_waiting(
      fmt::format("waiting for the first node at {}, at most {} s (join_timeout of "
                  "--rdzv-conf)",
                  endpoint(), std::chrono::duration<double>(settings_.join_timeout).count()),
      why);
}

void AgentScreen::waits(const Order& order, AgentStatus::State state, const std::string& why) {
  if (order.kind == Order::Kind::gather) {
    const std::string hint = why.empty() ? why_others_cannot_come(settings_) : why;
    tell_waiting(fmt::format("waiting for {} of {} nodes at {}", order.lacking, settings_.max_nodes,
                             endpoint()),
                 hint);
  } else if (state == AgentStatus::State::joining) {
    tell_waiting(
        fmt::format("waiting until the ranks of the run at {} have finished a step", endpoint()),
        why);
  } else {
    tell_waiting(fmt::format("waiting until the ranks of the run at {} start again", endpoint()),
                 why);
  }
}

void AgentScreen::tell_news(const Order& order) {
  const int64_t told = news_told_.value_or(order.news_count);
  news_told_ = order.news_count;
  if (settings_.is_remote_node) return;  // the node that has started it tells it
  const int64_t kept = std::ssize(order.news);
  const int64_t fresh = std::min(order.news_count - told, kept);
  for (int64_t i = kept - fresh; i < kept; ++i) {
    say("{}\n", order.news[static_cast<size_t>(i)]);
  }
}

void AgentScreen::starts_again(const Order& order) const {
  if (settings_.is_remote_node) return;
  say("error: {}\nthe ranks start again in {} s: restart {}\n", order.outcome.message, order.delay,
      order.round);
}

void AgentScreen::starts(const NodePlace& place) const {
  if (!tells_details()) return;
  say("node {} of {} ({}) starts ranks {} to {} of {}; the store is at {}\n", place.group_rank,
      place.group_world_size, settings_.node_name, place.first_rank,
      place.first_rank + settings_.ranks - 1, place.world_size, endpoint());
}

}  // namespace phalanx
