// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/joining.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace phalanx {
namespace {

constexpr std::string_view kProgram = "program ";

std::string first_word(const std::string& description) {
  const auto words = nlohmann::json::parse(description.substr(kProgram.size()));
  return words.at(0).get<std::string>();
}

}  // namespace

std::string to_text(const JoinedWord& word) {
  const nlohmann::json json = {word.number, word.facts.job, word.facts.node, word.facts.launched};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

JoinedWord joined_word_in(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  return {.number = json.at(0),
          .facts = {.job = json.at(1), .node = json.at(2), .launched = json.at(3)}};
}

Launched launched_program(const std::vector<std::string>& words, bool is_elastic) {
  Launched launched;
  const nlohmann::json list = words;
  launched.description =
      std::string(kProgram) + list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  launched.why_not = [here = launched.description, is_elastic](const LaunchFacts& facts,
                                                               const JoinAsk&) -> std::string {
    if (!facts.launched.starts_with(kProgram)) {
      return fmt::format(
          "this node starts the program '{}', and {} trains a config: start the "
          "same on all nodes",
          first_word(here), facts.node);
    }
    if (!is_elastic || here == facts.launched) return {};
    return fmt::format(
        "this node starts {}, and {} starts {}: nodes that come and go start the "
        "same words",
        here.substr(kProgram.size()), facts.node, facts.launched.substr(kProgram.size()));
  };
  launched.progress = [] { return RoundProgress{.has_stepped = true}; };
  return launched;
}

}  // namespace phalanx
