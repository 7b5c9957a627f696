// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace phalanx::rpc {

/// Calls of other workers that have not been answered yet, to name them. For several threads.
class CallsUnderWay {
 public:
  void begin(const std::string& worker, const std::string& function);
  void end(const std::string& worker, const std::string& function);

  /// "'lookup' of worker 'server' (rank 1), 2 times"; empty: none.
  std::string text() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, int64_t> counts_;  ///< By worker and function.
};

}  // namespace phalanx::rpc
