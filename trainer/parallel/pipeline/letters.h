// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/parallel/pipeline/mailbox.h"
#include "trainer/ranks/ranks.h"
#include "trainer/rpc/agent.h"

namespace phalanx::pipeline {

/// What stages send each other. Each rank is the worker "stage" with its number.
class Letters {
 public:
  /// `timeout`: how long to wait for a letter, and for each to come; none: that of the ranks.
  explicit Letters(const Ranks& ranks, std::optional<std::chrono::milliseconds> timeout = {});
  Letters(const Letters&) = delete;
  Letters& operator=(const Letters&) = delete;

  /// Does not wait for the stage. Tensors stay as they are until `confirm`.
  void send(int64_t stage, const std::string& key, rpc::Values letter);
  /// Waits until all that was sent has come. Throws WorkerLost.
  void confirm();
  /// Waits for a letter. Throws WorkerLost, at once where that stage is gone, and at the timeout
  /// with the names of those that do not answer.
  rpc::Values receive(int64_t stage, const std::string& key);

  /// Every stage calls it, at the end.
  void shutdown() { agent_->shutdown(); }

 private:
  [[noreturn]] void refuse_silence(int64_t stage, const std::string& key) const;

  std::string worker(int64_t stage) const { return agent_->workers()[static_cast<size_t>(stage)]; }

  Mailbox mailbox_;
  std::vector<rpc::Future> sent_;
  std::unique_ptr<rpc::Agent> agent_;  // Last: its threads use the mailbox.
};

}  // namespace phalanx::pipeline
