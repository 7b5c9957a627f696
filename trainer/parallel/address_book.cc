// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/address_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace phalanx {
namespace {

using Bytes = std::vector<uint8_t>;
using Keys = std::vector<std::string>;
using Milliseconds = std::chrono::milliseconds;

// Gloo keeps a rank's addresses under "0/RANK" (gloo/rendezvous/context.cc, by the prefix that
// ProcessGroupGloo.cpp gives each of its contexts).
class AddressBook final : public c10d::Store {
 public:
  AddressBook(c10::intrusive_ptr<c10d::Store> store, int64_t world_size)
      : store_(std::move(store)), world_size_(world_size) {}

  c10::intrusive_ptr<c10d::Store> clone() override {
    return make_address_book(store_->clone(), world_size_);
  }

  void set(const std::string& key, const Bytes& value) override {
    store_->set(key, value);
    const std::lock_guard lock(mutex_);
    folder_ = key.substr(0, key.rfind('/') + 1);
  }

  Bytes get(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    if (!is_address(key)) return store_->get(key);
    learn(store_->getTimeout());
    return addresses_.at(key);
  }

  void wait(const Keys& keys) override { wait(keys, store_->getTimeout()); }

  void wait(const Keys& keys, const Milliseconds& timeout) override {
    const std::lock_guard lock(mutex_);
    const bool are_addresses =
        std::ranges::all_of(keys, [this](const std::string& key) { return is_address(key); });
    if (!are_addresses) return store_->wait(keys, timeout);
    learn(timeout);
  }

  Bytes compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) override {
    return store_->compareSet(key, expected, desired);
  }
  int64_t add(const std::string& key, int64_t value) override { return store_->add(key, value); }
  bool deleteKey(const std::string& key) override { return store_->deleteKey(key); }
  bool check(const Keys& keys) override { return store_->check(keys); }
  int64_t getNumKeys() override { return store_->getNumKeys(); }
  const Milliseconds& getTimeout() const noexcept override { return store_->getTimeout(); }
  void setTimeout(const Milliseconds& timeout) override { store_->setTimeout(timeout); }

 private:
  bool is_address(const std::string& key) const {
    if (folder_.empty() || !key.starts_with(folder_)) return false;
    const std::string rank = key.substr(folder_.size());
    return !rank.empty() &&
           std::ranges::all_of(rank, [](unsigned char c) { return c >= '0' && c <= '9'; });
  }

  // Every rank of a group makes it, so every address comes.
  void learn(const Milliseconds& timeout) {
    if (!addresses_.empty()) return;
    Keys keys;
    for (int64_t rank = 0; rank < world_size_; ++rank) {
      keys.push_back(fmt::format("{}{}", folder_, rank));
    }
    store_->wait(keys, timeout);
    std::vector<Bytes> values = store_->multiGet(keys);
    for (size_t i = 0; i < keys.size(); ++i) addresses_.emplace(keys[i], std::move(values.at(i)));
  }

  c10::intrusive_ptr<c10d::Store> store_;
  int64_t world_size_;
  std::mutex mutex_;    // Gloo connects from several threads
  std::string folder_;  // of the addresses; empty until this rank has set its own
  std::map<std::string, Bytes> addresses_;
};

}  // namespace

c10::intrusive_ptr<c10d::Store> make_address_book(c10::intrusive_ptr<c10d::Store> store,
                                                  int64_t world_size) {
  if (!store->hasExtendedApi()) return store;
  return c10::make_intrusive<AddressBook>(std::move(store), world_size);
}

}  // namespace phalanx
