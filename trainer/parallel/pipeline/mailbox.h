// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "trainer/rpc/functions.h"
#include "trainer/rpc/values.h"

namespace phalanx::pipeline {

/// What other stages have sent here, each under a key that is used once, until it is taken.
class Mailbox {
 public:
  /// What other stages call: the first line of the text is the key, the rest is the letter's text.
  rpc::Function put();
  /// The arguments of such a call.
  static rpc::Values addressed(const std::string& key, rpc::Values letter);

  /// Waits for a letter; nothing: it has not come within `patience`.
  std::optional<rpc::Values> take(const std::string& key, std::chrono::milliseconds patience);

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::map<std::string, rpc::Values> letters_;
};

}  // namespace phalanx::pipeline
