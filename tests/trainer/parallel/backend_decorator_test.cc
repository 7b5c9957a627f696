// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/collectives/backend_decorator.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {
namespace {

int64_t groups_made = 0;  // in each rank

TEST(BackendDecorator, SeesEveryGroupOfRanks) {
  decorate_backends([](auto backend) {
    ++groups_made;
    return backend;
  });
  const auto body = [](World& world) {
    require(groups_made == 1, "the world's group is made of one decorated backend");
    const std::vector<int64_t> all{0, 1};
    const auto group = world.ranks().subgroup(all);
    require(groups_made == 2, "so is a group of ranks");
  };
  EXPECT_EQ(in_ranks(2, body).message, "");
  decorate_backends({});
}

}  // namespace
}  // namespace phalanx
