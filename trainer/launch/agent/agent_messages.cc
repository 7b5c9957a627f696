// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/agent_messages.h"

#include <nlohmann/json.hpp>

namespace phalanx {
namespace {

using Json = nlohmann::json;

Json to_json(const RankOutcome& outcome) {
  return {outcome.exit_code, outcome.message, outcome.caused_by_peer, outcome.rank.value_or(-1),
          outcome.signal};
}

RankOutcome outcome_in(const Json& json) {
  RankOutcome outcome{.exit_code = json.at(0), .message = json.at(1), .caused_by_peer = json.at(2)};
  const int64_t rank = json.at(3);
  if (rank >= 0) outcome.rank = rank;
  outcome.signal = json.at(4);
  return outcome;
}

// What ranks print need not be UTF-8.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string to_text(const AgentStatus& status) {
  return text_of({{"node", status.node},
                  {"version", status.version},
                  {"ranks", status.ranks},
                  {"node_rank", status.node_rank},
                  {"beat", status.beat},
                  {"state", static_cast<int>(status.state)},
                  {"round", status.round},
                  {"outcome", to_json(status.end.outcome)},
                  {"time", status.end.time},
                  {"may_restart", status.end.may_restart}});
}

AgentStatus status_in(const std::string& text) {
  const Json json = Json::parse(text);
  return {.node = json.at("node"),
          .version = json.at("version"),
          .ranks = json.at("ranks"),
          .node_rank = json.at("node_rank"),
          .beat = json.at("beat"),
          .state = static_cast<AgentStatus::State>(json.at("state").get<int>()),
          .round = json.at("round"),
          .end = {.outcome = outcome_in(json.at("outcome")),
                  .time = json.at("time"),
                  .may_restart = json.at("may_restart")}};
}

std::string to_text(const Order& order) {
  Json members = Json::array();
  for (const Member& member : order.members) members.push_back({member.agent, member.ranks});
  Json refused = Json::array();
  for (const auto& [agent, why] : order.refused) refused.push_back({agent, why});
  return text_of({{"kind", static_cast<int>(order.kind)},
                  {"round", order.round},
                  {"members", members},
                  {"outcome", to_json(order.outcome)},
                  {"lacking", order.lacking},
                  {"delay", order.delay},
                  {"refused", refused}});
}

Order order_in(const std::string& text) {
  const Json json = Json::parse(text);
  Order order{.kind = static_cast<Order::Kind>(json.at("kind").get<int>()),
              .round = json.at("round"),
              .members = {},
              .outcome = outcome_in(json.at("outcome")),
              .lacking = json.at("lacking"),
              .delay = json.at("delay"),
              .refused = {}};
  for (const Json& member : json.at("members")) {
    order.members.push_back({.agent = member.at(0), .ranks = member.at(1)});
  }
  for (const Json& each : json.at("refused")) order.refused[each.at(0)] = each.at(1);
  return order;
}

}  // namespace phalanx
