// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace phalanx {

/// Texts by key that all ranks of a group see (torch.distributed's store).
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;

  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Waits for the key, at most `timeout` (0: does not wait); nothing when it did not come.
  virtual std::optional<std::string> get(const std::string& key,
                                         std::chrono::milliseconds timeout) = 0;
  /// Whether the key is there.
  virtual bool contains(const std::string& key) = 0;
  /// Adds to a number, 0 if the key is absent, and returns the sum.
  virtual int64_t add(const std::string& key, int64_t amount) = 0;
  /// Sets the key unless it is there; returns the value that it has then.
  virtual std::string set_if_absent(const std::string& key, const std::string& value) = 0;
  /// Forgets the key, if it is there.
  virtual void remove(const std::string& key) = 0;
};

}  // namespace phalanx
