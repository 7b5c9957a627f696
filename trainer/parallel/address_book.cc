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

// Gloo keeps a rank's address under "0/RANK", for a second network interface under "1/RANK"
// (gloo/transport/context.cc, behind the prefix that ProcessGroupGloo.cpp gives each interface).
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
    folders_.try_emplace(folder_of(key));
  }

  Bytes get(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    if (!is_address(key)) return store_->get(key);
    return learned(folder_of(key), store_->getTimeout()).at(key);
  }

  void wait(const Keys& keys) override { wait(keys, store_->getTimeout()); }

  void wait(const Keys& keys, const Milliseconds& timeout) override {
    const std::lock_guard lock(mutex_);
    const bool are_addresses =
        std::ranges::all_of(keys, [this](const std::string& key) { return is_address(key); });
    if (!are_addresses) return store_->wait(keys, timeout);
    for (const std::string& key : keys) learned(folder_of(key), timeout);
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
  using Addresses = std::map<std::string, Bytes>;

  static std::string folder_of(const std::string& key) { return key.substr(0, key.rfind('/') + 1); }

  bool is_address(const std::string& key) const {
    const std::string folder = folder_of(key);
    const std::string rank = key.substr(folder.size());
    return folders_.contains(folder) && !rank.empty() &&
           rank.find_first_not_of("0123456789") == std::string::npos;
  }

  // Every rank of a group makes it, so every address comes.
  const Addresses& learned(const std::string& folder, const Milliseconds& timeout) {
    Addresses& addresses = folders_.at(folder);
    if (!addresses.empty()) return addresses;
    Keys keys;
    for (int64_t rank = 0; rank < world_size_; ++rank) {
      keys.push_back(fmt::format("{}{}", folder, rank));
    }
    store_->wait(keys, timeout);
    std::vector<Bytes> values = store_->multiGet(keys);
    for (size_t i = 0; i < keys.size(); ++i) addresses.emplace(keys[i], std::move(values.at(i)));
    return addresses;
  }

  c10::intrusive_ptr<c10d::Store> store_;
  int64_t world_size_;
  std::mutex mutex_;  // Gloo connects from several threads
  /// Of each network interface, where this rank has set its own address; empty until one is asked
  /// for.
  std::map<std::string, Addresses> folders_;
};

}  // namespace

c10::intrusive_ptr<c10d::Store> make_address_book(c10::intrusive_ptr<c10d::Store> store,
                                                  int64_t world_size) {
  if (!store->hasExtendedApi()) return store;
  return c10::make_intrusive<AddressBook>(std::move(store), world_size);
}

}  // namespace phalanx
