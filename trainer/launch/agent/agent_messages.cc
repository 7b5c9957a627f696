// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/agent_messages.h"

#include <nlohmann/json.hpp>

namespace phalanx {
namespace {

using Json = nlohmann::json;

Json to_json(const RankOutcome& outcome) {
  return {outcome.exit_code,         outcome.message, outcome.caused_by_peer,
          outcome.rank.value_or(-1), outcome.signal,  outcome.reason};
}

RankOutcome outcome_in(const Json& json) {
  RankOutcome outcome{.exit_code = json.at(0), .message = json.at(1), .caused_by_peer = json.at(2)};
  const int64_t rank = json.at(3);
  if (rank >= 0) outcome.rank = rank;
  outcome.signal = json.at(4);
  outcome.reason = json.at(5);
  return outcome;
}

Json to_json(const JoinAsk& ask) { return {ask.ranks_of_nodes, ask.samples_a_step}; }

JoinAsk ask_in(const Json& json) {
  return {.ranks_of_nodes = json.at(0), .samples_a_step = json.at(1)};
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
                  {"min_nodes", status.min_nodes},
                  {"max_nodes", status.max_nodes},
                  {"beat", status.beat},
                  {"state", static_cast<int>(status.state)},
                  {"round", status.round},
                  {"outcome", to_json(status.end.outcome)},
                  {"time", status.end.time},
                  {"may_restart", status.end.may_restart},
                  {"is_told", status.is_told},
                  {"has_stepped", status.has_stepped},
                  {"samples_a_step", status.samples_a_step},
                  {"answered", status.answered ? to_json(*status.answered) : Json()},
                  {"unfit", status.unfit}});
}

AgentStatus status_in(const std::string& text) {
  const Json json = Json::parse(text);
  const Json& answered = json.at("answered");
  return {.node = json.at("node"),
          .version = json.at("version"),
          .ranks = json.at("ranks"),
          .node_rank = json.at("node_rank"),
          .min_nodes = json.at("min_nodes"),
          .max_nodes = json.at("max_nodes"),
          .beat = json.at("beat"),
          .state = static_cast<AgentStatus::State>(json.at("state").get<int>()),
          .round = json.at("round"),
          .end = {.outcome = outcome_in(json.at("outcome")),
                  .time = json.at("time"),
                  .may_restart = json.at("may_restart")},
          .is_told = json.at("is_told"),
          .has_stepped = json.at("has_stepped"),
          .samples_a_step = json.at("samples_a_step"),
          .answered = answered.is_null() ? std::nullopt : std::optional(ask_in(answered)),
          .unfit = json.at("unfit")};
}

std::string to_text(const Order& order) {
  Json members = Json::array();
  for (const Member& member : order.members) members.push_back({member.agent, member.ranks});
  Json refused = Json::array();
  for (const auto& [agent, why] : order.refused) refused.push_back({agent, why});
  Json asked = Json::array();
  for (const auto& [agent, ask] : order.asked) asked.push_back({agent, to_json(ask)});
  return text_of({{"kind", static_cast<int>(order.kind)},
                  {"round", order.round},
                  {"members", members},
                  {"outcome", to_json(order.outcome)},
                  {"reason", order.reason},
                  {"lacking", order.lacking},
                  {"delay", order.delay},
                  {"refused", refused},
                  {"asked", asked},
                  {"news", order.news},
                  {"news_count", order.news_count}});
}

Order order_in(const std::string& text) {
  const Json json = Json::parse(text);
  Order order{.kind = static_cast<Order::Kind>(json.at("kind").get<int>()),
              .round = json.at("round"),
              .members = {},
              .outcome = outcome_in(json.at("outcome")),
              .reason = json.at("reason"),
              .lacking = json.at("lacking"),
              .delay = json.at("delay"),
              .refused = {},
              .asked = {},
              .news = json.at("news"),
              .news_count = json.at("news_count")};
  for (const Json& member : json.at("members")) {
    order.members.push_back({.agent = member.at(0), .ranks = member.at(1)});
  }
  for (const Json& each : json.at("refused")) order.refused[each.at(0)] = each.at(1);
  for (const Json& each : json.at("asked")) order.asked[each.at(0)] = ask_in(each.at(1));
  return order;
}

}  // namespace phalanx
