// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/pipeline/letters.h"

#include <fmt/format.h>

#include <utility>

#include "trainer/rpc/rpc_error.h"

namespace phalanx::pipeline {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kPut = "pipeline/put";
// How often a stage that waits asks whether the one that it waits for is there.
constexpr std::chrono::milliseconds kBetweenLooks{1000};

}  // namespace

Letters::Letters(const Ranks& ranks, std::optional<std::chrono::milliseconds> timeout) {
  agent_ = std::make_unique<rpc::Agent>(
      ranks, rpc::AgentOptions{.name = fmt::format("stage{}", ranks.rank()),
                               .functions = {{kPut, mailbox_.put()}},
                               .timeout = timeout});
}

void Letters::send(int64_t stage, const std::string& key, rpc::Values letter) {
  sent_.push_back(
      agent_->call_async(worker(stage), kPut, Mailbox::addressed(key, std::move(letter))));
}

void Letters::confirm() {
  const std::vector<rpc::Future> sent = std::exchange(sent_, {});
  rpc::wait_all(sent);
}

rpc::Values Letters::receive(int64_t stage, const std::string& key) {
  const auto end = Clock::now() + agent_->timeout();
  std::optional<rpc::Future> look;
  while (true) {
    if (auto letter = mailbox_.take(key, kBetweenLooks)) return *std::move(letter);
    if (Clock::now() >= end) refuse_silence(stage, key);
    if (look && !look->is_done()) continue;
    if (look) look->wait();  // throws of one that is gone
    look = agent_->is_there(worker(stage));
  }
}

void Letters::refuse_silence(int64_t stage, const std::string& key) const {
  std::string silent = agent_->silent_workers(kBetweenLooks);
  if (!silent.empty()) silent = "; no answer from " + silent;
  throw rpc::WorkerLost(fmt::format("{} has not come in {} s from {} (rank {}): timeout{}", key,
                                    std::chrono::duration<double>(agent_->timeout()).count(),
                                    worker(stage), stage, silent));
}

}  // namespace phalanx::pipeline
