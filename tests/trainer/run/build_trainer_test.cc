// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/build_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/test_device/test_device.h"
#include "tests/trainer/commands/command_fixture.h"
#include "tests/trainer/memory/stand_in_device.h"
#include "trainer/base/user_error.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/ranks/stores/group_store.h"
#include "trainer/run/load_config.h"

namespace phalanx::tiny {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(BuildTrainer, RefusesAModelThatItsDeviceCannotHold) {
  test_device::install();
  const StandInDevice device({.total = 1000, .free = 1});
  config::Diagnostics mistakes;
  config::Node tree = config::parse_yaml(kConfig, "tiny.yaml", mistakes);
  mistakes.throw_if_any();
  const UserConfig user = config_of(std::move(tree), {});
  const config::Node resolved = resolve_config(user, "run");
  const World world(Ranks(), StandInDevice::kDevice, make_local_store());
  EXPECT_THAT(
      [&] {
        build_trainer(*user.entry, plan_of(*user.entry, resolved), resolved, world,
                      Purpose::training);
      },
      ThrowsMessage<UserError>(HasSubstr("the free memory of sim:0")));
}

}  // namespace
}  // namespace phalanx::tiny
