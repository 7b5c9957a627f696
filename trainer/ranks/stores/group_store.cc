// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/stores/group_store.h"

#include <fmt/format.h>

#include <map>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

#include "trainer/ranks/collectives/alone.h"
#include "trainer/ranks/failures/communication_error.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

// Gives an error of the store its context.
template <class Function>
auto ask_store(Function function) {
  try {
    return function();
  } catch (const std::exception& error) {
    throw CommunicationError(fmt::format("the key-value store: {}", error_text(error)));
  }
}

// A FileStore says so by a c10::Error, and the others by one of their own kind.
bool is_timeout(const std::exception& error) {
  return dynamic_cast<const c10::DistStoreError*>(&error) != nullptr ||
         std::string_view(error.what()).find("Wait timeout") != std::string_view::npos;
}

// The store answers errors of its own kind; get() and wait() throw when the time is over.
class C10dStore final : public KeyValueStore {
 public:
  explicit C10dStore(c10::intrusive_ptr<c10d::Store> store) : store_(std::move(store)) {}

  void set(const std::string& key, const std::string& value) override {
    ask_store([&] { store_->set(key, value); });
  }
  std::optional<std::string> get(const std::string& key,
                                 std::chrono::milliseconds timeout) override {
    return ask_store([&]() -> std::optional<std::string> {
      try {
        if (timeout.count() > 0) store_->wait({key}, timeout);
      } catch (const std::exception& error) {
        if (!is_timeout(error)) throw;
        return std::nullopt;
      }
      if (!store_->check({key})) return std::nullopt;
      return store_->get_to_str(key);
    });
  }
  bool contains(const std::string& key) override {
    return ask_store([&] { return store_->check({key}); });
  }
  int64_t add(const std::string& key, int64_t amount) override {
    return ask_store([&] { return store_->add(key, amount); });
  }
  std::string set_if_absent(const std::string& key, const std::string& value) override {
    return ask_store([&] { return store_->compareSet(key, std::string(), value); });
  }
  void remove(const std::string& key) override {
    ask_store([&] { store_->deleteKey(key); });
  }

 private:
  c10::intrusive_ptr<c10d::Store> store_;
};

// A world of one needs no server to remember a text.
class LocalStore final : public KeyValueStore {
 public:
  void set(const std::string& key, const std::string& value) override { values_[key] = value; }
  std::optional<std::string> get(const std::string& key, std::chrono::milliseconds) override {
    const auto found = values_.find(key);
    if (found == values_.end()) return std::nullopt;
    return found->second;
  }
  bool contains(const std::string& key) override { return values_.contains(key); }
  int64_t add(const std::string& key, int64_t amount) override {
    const auto found = values_.find(key);
    const int64_t sum = amount + (found == values_.end() ? 0 : std::stoll(found->second));
    values_[key] = std::to_string(sum);
    return sum;
  }
  std::string set_if_absent(const std::string& key, const std::string& value) override {
    return values_.try_emplace(key, value).first->second;
  }
  void remove(const std::string& key) override { values_.erase(key); }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace

std::unique_ptr<KeyValueStore> make_key_value_store(c10::intrusive_ptr<c10d::Store> store) {
  return std::make_unique<C10dStore>(std::move(store));
}

std::unique_ptr<KeyValueStore> make_local_store() { return std::make_unique<LocalStore>(); }

void GroupEnd::require_open(std::string_view operation) const {
  if (Alone::is_active()) {
    throw std::logic_error(fmt::format("{}: other ranks take no part in this", operation));
  }
  if (!is_reached()) return;
  throw std::logic_error(fmt::format("{}: the group of ranks has been closed", operation));
}

std::shared_ptr<KeyValueStore> GroupStore::open(std::string_view operation) const {
  const std::lock_guard lock(mutex_);
  end_->require_open(operation);
  return store_;
}

void GroupStore::release() {
  std::shared_ptr<KeyValueStore> last;  // ends without the lock
  const std::lock_guard lock(mutex_);
  last.swap(store_);
}

void GroupStore::set(const std::string& key, const std::string& value) {
  open("the store's set")->set(key, value);
}

std::optional<std::string> GroupStore::get(const std::string& key,
                                           std::chrono::milliseconds timeout) {
  return open("the store's get")->get(key, timeout);
}

bool GroupStore::contains(const std::string& key) {
  return open("the store's contains")->contains(key);
}

int64_t GroupStore::add(const std::string& key, int64_t amount) {
  return open("the store's add")->add(key, amount);
}

std::string GroupStore::set_if_absent(const std::string& key, const std::string& value) {
  return open("the store's set_if_absent")->set_if_absent(key, value);
}

void GroupStore::remove(const std::string& key) { open("the store's remove")->remove(key); }

}  // namespace phalanx
