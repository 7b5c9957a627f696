// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/heartbeats.h"

namespace phalanx {

void Heartbeats::listen(const Agents& agents, AgentClock::time_point now) {
  for (const auto& [agent, status] : agents) {
    Beat& beat = beats_.try_emplace(agent, Beat{status.beat, now, now}).first->second;
    if (beat.number != status.beat) beat = {status.beat, beat.first, now};
  }
}

bool Heartbeats::is_silent(int64_t agent, AgentClock::time_point now) const {
  return now - beats_.at(agent).last > timeout_;
}

bool Heartbeats::replaces(int64_t agent, int64_t earlier) const {
  return beats_.at(earlier).last <= beats_.at(agent).first;
}

}  // namespace phalanx
