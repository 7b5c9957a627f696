// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/rendezvous/address_book.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "trainer/host/reachable.h"

namespace phalanx {
namespace {

using Bytes = std::vector<uint8_t>;
using Keys = std::vector<std::string>;
using Milliseconds = std::chrono::milliseconds;

// What Gloo keeps of a rank: its host's name and its address, each behind its size in bytes, and
// more (struct Rank, gloo/transport/tcp/context.cc). nullopt: something else.
std::optional<sockaddr_storage> socket_address(const Bytes& rank) {
  size_t position = 0;
  const auto take_size = [&] {
    size_t size = 0;
    if (rank.size() - position < sizeof(size)) return rank.size();
    std::memcpy(&size, rank.data() + position, sizeof(size));
    position += sizeof(size);
    return size;
  };
  const size_t name_size = take_size();
  if (name_size > rank.size() - position) return std::nullopt;
  position += name_size;
  const size_t address_size = take_size();
  sockaddr_storage address{};
  if (address_size < sizeof(address) || address_size > rank.size() - position) return std::nullopt;
  std::memcpy(&address, rank.data() + position, sizeof(address));
  const bool is_internet = address.ss_family == AF_INET || address.ss_family == AF_INET6;
  return is_internet ? std::optional(address) : std::nullopt;
}

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
    Bytes value = learned(folder_of(key), store_->getTimeout()).at(key);
    if (const auto address = socket_address(value)) reach(key, *address);
    return value;
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

  // Once for each host.
  void reach(const std::string& key, const sockaddr_storage& address) {
    const std::string text = describe(address);
    const std::string host = text.substr(0, text.find(' '));
    if (reached_.contains(host)) return;
    const std::string rank = key.substr(folder_of(key).size());
    try {
      wait_until_reachable(address, store_->getTimeout(), [&](const std::error_code& why) {
        fmt::print(stderr, "waiting for a way to rank {} at {}: {}\n", rank, text, why.message());
      });
    } catch (const std::system_error& error) {
      throw std::runtime_error(fmt::format(
          "no way to rank {} at {} in {} s: {}. Ranks connect with each other: is the network "
          "between their hosts up, and do firewalls let them through?",
          rank, text, std::chrono::duration<double>(store_->getTimeout()).count(),
          error.code().message()));
    }
    reached_.insert(host);
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
  /// By network interface: where this rank has set its own address. Empty until one is asked for.
  std::map<std::string, Addresses> folders_;
  std::set<std::string> reached_;
};

}  // namespace

c10::intrusive_ptr<c10d::Store> make_address_book(c10::intrusive_ptr<c10d::Store> store,
                                                  int64_t world_size) {
  if (!store->hasExtendedApi()) return store;
  return c10::make_intrusive<AddressBook>(std::move(store), world_size);
}

}  // namespace phalanx
