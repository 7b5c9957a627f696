// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/kept_schedule.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "trainer/base/json_cause.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kName = "name";
constexpr const char* kState = "state";

}  // namespace

KeptSchedule::KeptSchedule(std::string name, Stateful& state, Tell tell)
    : name_(std::move(name)), state_(state), tell_(std::move(tell)) {}

std::string KeptSchedule::json() const {
  Json kept{{kName, name_}};
  if (const std::string state = state_.json(); !state.empty()) kept[kState] = Json::parse(state);
  return kept.dump();
}

void KeptSchedule::restore(std::string_view json) {
  std::string before;
  std::string state;
  try {
    const Json kept = Json::parse(json);
    // Without a name it is of an earlier version, which kept the state alone.
    const bool is_state_alone = kept.is_object() && !kept.empty() && !kept.contains(kName);
    before = is_state_alone ? name_ : kept.at(kName).get<std::string>();
    if (is_state_alone) {
      state = kept.dump();
    } else if (kept.contains(kState)) {
      state = kept.at(kState).dump();
    }
  } catch (const nlohmann::json::exception& error) {
    throw UserError(fmt::format("the state of lr_scheduler cannot be read: {}", json_cause(error)));
  }
  if (before == name_) {
    state_.restore(state);
    return;
  }
  tell_(fmt::format("the checkpoint holds the state of lr_scheduler {}: {} begins anew", before,
                    name_));
}

}  // namespace phalanx
