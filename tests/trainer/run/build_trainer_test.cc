// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/build_trainer.h"

#include <ATen/Context.h>
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

class BuildTrainer : public testing::Test {
 protected:
  BuildTrainer() { test_device::install(); }

  void build(at::Device device, Purpose purpose) const {
    const World world(Ranks(), device, make_local_store());
    build_trainer(*user_.entry, plan_of(*user_.entry, resolved_), resolved_, world, purpose);
  }

 private:
  static UserConfig user() {
    config::Diagnostics mistakes;
    config::Node tree = config::parse_yaml(kConfig, "tiny.yaml", mistakes);
    mistakes.throw_if_any();
    return config_of(std::move(tree), {});
  }

  UserConfig user_ = user();
  config::Node resolved_ = resolve_config(user_, "run");
};

TEST_F(BuildTrainer, RefusesAModelThatItsDeviceCannotHold) {
  const StandInDevice device({.total = 1000, .free = 1});
  EXPECT_THAT([&] { build(StandInDevice::kDevice, Purpose::training); },
              ThrowsMessage<UserError>(HasSubstr("the free memory of sim:0")));
}

TEST_F(BuildTrainer, PlansAttentionWhereShapesRepeatAlone) {
  build(at::kCPU, Purpose::evaluation);
  EXPECT_FALSE(at::globalContext().userEnabledCuDNNSDP());
  build(at::kCPU, Purpose::use);
  EXPECT_FALSE(at::globalContext().userEnabledCuDNNSDP());
  build(at::kCPU, Purpose::training);
  EXPECT_TRUE(at::globalContext().userEnabledCuDNNSDP());
}

}  // namespace
}  // namespace phalanx::tiny
