// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/ranks/stores/key_value_store.h"

namespace c10d {
class Store;
}

namespace phalanx {

/// A c10d store as KeyValueStore.
std::unique_ptr<KeyValueStore> make_key_value_store(c10::intrusive_ptr<c10d::Store> store);

/// One for a world of one.
std::unique_ptr<KeyValueStore> make_local_store();

/// Whether a group of ranks has been closed, or a group that it was made of. For several threads.
class GroupEnd {
 public:
  /// `whole`: of the group that this one is made of.
  explicit GroupEnd(std::shared_ptr<const GroupEnd> whole = nullptr) : whole_(std::move(whole)) {}

  void reach() { is_reached_ = true; }
  /// Throws std::logic_error that names the `operation`, once it is reached, and within Alone.
  void require_open(std::string_view operation) const;

 private:
  bool is_reached() const { return is_reached_ || (whole_ && whole_->is_reached()); }

  std::shared_ptr<const GroupEnd> whole_;
  std::atomic<bool> is_reached_ = false;
};

/// A group's store: passes on to another one until the group has been closed. Then its operations
/// throw std::logic_error.
class GroupStore final : public KeyValueStore {
 public:
  GroupStore(std::shared_ptr<const GroupEnd> end, std::shared_ptr<KeyValueStore> store)
      : end_(std::move(end)), store_(std::move(store)) {}

  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> get(const std::string& key,
                                 std::chrono::milliseconds timeout) override;
  bool contains(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  std::string set_if_absent(const std::string& key, const std::string& value) override;
  void remove(const std::string& key) override;

  /// Lets go of the other store, once the end is reached; an operation under way keeps it.
  void release();

 private:
  std::shared_ptr<KeyValueStore> open(std::string_view operation) const;

  std::shared_ptr<const GroupEnd> end_;
  mutable std::mutex mutex_;
  std::shared_ptr<KeyValueStore> store_;
};

}  // namespace phalanx
