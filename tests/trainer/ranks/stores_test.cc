// SPDX-License-Identifier: Apache-2.0
// c10d's stores as KeyValueStore.

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "trainer/ranks/stores/group_store.h"

namespace phalanx {
namespace {

using namespace std::chrono_literals;

void use(KeyValueStore& store) {
  EXPECT_FALSE(store.contains("key"));
  EXPECT_EQ(store.get("key", 0ms), std::nullopt);
  EXPECT_EQ(store.get("key", 50ms), std::nullopt) << "nobody sets it";
  const std::string bytes("a\0\xff", 3);
  store.set("key", bytes);
  EXPECT_TRUE(store.contains("key"));
  EXPECT_EQ(store.get("key", 1s), bytes);
  EXPECT_EQ(store.add("count", 3), 3);
  EXPECT_EQ(store.add("count", -1), 2);
  EXPECT_EQ(store.set_if_absent("once", "first"), "first");
  EXPECT_EQ(store.set_if_absent("once", "second"), "first");
  store.remove("key");
  EXPECT_FALSE(store.contains("key"));
}

TEST(Stores, OfThisProcess) { use(*make_key_value_store(c10::make_intrusive<c10d::HashStore>())); }

TEST(Stores, OfAFile) {
  const auto file =
      std::filesystem::path(testing::TempDir()) / ("store_" + std::to_string(getpid()));
  use(*make_key_value_store(c10::make_intrusive<c10d::FileStore>(file.string(), 1)));
  std::filesystem::remove(file);
}

TEST(Stores, WithAPrefix) {
  const auto whole = c10::make_intrusive<c10d::HashStore>();
  const auto store = make_key_value_store(c10::make_intrusive<c10d::PrefixStore>("jobs", whole));
  use(*store);
  store->set("key", "1");
  EXPECT_EQ(make_key_value_store(whole)->get("jobs/key", 0ms), "1");
}

}  // namespace
}  // namespace phalanx
