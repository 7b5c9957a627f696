// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "trainer/rpc/functions.h"
#include "trainer/rpc/future.h"

namespace phalanx::rpc {

/// What a worker serves: its functions, and the values that remote references of all workers point
/// at. For several threads.
class Served {
 public:
  explicit Served(FunctionTable functions) : functions_(std::move(functions)) {}

  /// Calls a function. Throws std::invalid_argument for one that is not there, and what it throws.
  Future call(const std::string& function, Values arguments) const;

  /// Has what a function answers stay here, as value `id` with one handle.
  void make(int64_t id, const std::string& function, Values arguments);
  /// Throws std::logic_error for a value that has been dropped.
  Future value(int64_t id) const;
  /// The value itself, once it has been made.
  const Values& local_value(int64_t id) const;
  /// One more handle, or one less; the value goes with the last one.
  void retain(int64_t id);
  void release(int64_t id);
  /// Values that are kept now.
  std::size_t values() const;

 private:
  struct Kept {
    Future value;
    int64_t handles = 1;
    std::shared_ptr<Values> local = {};  ///< From the first `local_value` on.
  };

  Kept& kept(int64_t id) const;

  FunctionTable functions_;
  mutable std::mutex mutex_;
  mutable std::map<int64_t, Kept> kept_;
};

}  // namespace phalanx::rpc
