// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/rendezvous/address_book.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <vector>

namespace phalanx {
namespace {

using Bytes = std::vector<uint8_t>;

/// Forgets what has been got, so that a second look at it would fail.
class ReadOnce final : public c10d::HashStore {
 public:
  std::vector<Bytes> multiGet(const std::vector<std::string>& keys) override {
    auto values = HashStore::multiGet(keys);
    for (const std::string& key : keys) deleteKey(key);
    return values;
  }
};

class AddressBook : public testing::Test {
 protected:
  c10::intrusive_ptr<ReadOnce> store = c10::make_intrusive<ReadOnce>();
  c10::intrusive_ptr<c10d::Store> book = make_address_book(store, 3);
};

TEST_F(AddressBook, GetsAllAddressesAtOnce) {
  book->set("0/1", Bytes{11});
  store->set("0/0", Bytes{10});
  store->set("0/2", Bytes{12});
  book->wait({"0/2"}, std::chrono::seconds(1));
  EXPECT_EQ(book->get("0/2"), Bytes{12});
  EXPECT_EQ(book->get("0/0"), Bytes{10});
  EXPECT_EQ(book->get("0/1"), Bytes{11});
}

TEST_F(AddressBook, KeepsInterfacesApart) {
  for (const std::string folder : {"0/", "1/"}) {
    const uint8_t first = folder == "0/" ? 10 : 20;
    book->set(folder + "0", Bytes{first});
    for (uint8_t rank : {1, 2}) {
      store->set(folder + std::to_string(rank), Bytes{static_cast<uint8_t>(first + rank)});
    }
  }
  EXPECT_EQ(book->get("0/2"), Bytes{12});
  EXPECT_EQ(book->get("1/2"), Bytes{22});
  EXPECT_EQ(book->get("0/1"), Bytes{11});
}

TEST_F(AddressBook, WaitsForARankThatIsMissing) {
  book->set("0/0", Bytes{10});
  store->set("0/1", Bytes{11});
  EXPECT_THROW(book->wait({"0/1"}, std::chrono::milliseconds(10)), c10::Error);
  store->set("0/2", Bytes{12});
  book->wait({"0/1"}, std::chrono::milliseconds(10));
  EXPECT_EQ(book->get("0/1"), Bytes{11});
}

TEST_F(AddressBook, LeavesOtherKeysAsTheyAre) {
  book->set("0/0", Bytes{10});
  store->set("0/name", Bytes{1});
  store->set("2/0", Bytes{2});
  EXPECT_EQ(book->get("0/name"), Bytes{1});
  EXPECT_EQ(book->get("2/0"), Bytes{2});
  EXPECT_EQ(book->add("count", 3), 3);
  EXPECT_TRUE(book->check({"0/name"}));
  EXPECT_TRUE(book->deleteKey("0/name"));
  EXPECT_FALSE(book->check({"0/name"}));
}

}  // namespace
}  // namespace phalanx
