// SPDX-License-Identifier: Apache-2.0
#include "trainer/plan/memory_needs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/trainer/loop/tiny.h"
#include "tests/trainer/memory/stand_in_device.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/api/parameters.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/node.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Parameters and gradients of the tiny model, four float32 elements: 16 bytes each.
constexpr int64_t kNeeded = 32;

std::string refusal_on(const Ranks& ranks, const RunPlan& plan = {},
                       const Optimizer& optimizer = tiny::Descent()) {
  const auto model = tiny::make_model();
  config::Node section = config::Node::map();
  section.set("name", config::Node::string("linear"));
  section.set("width", config::Node::integer(3));
  section.set("depth", config::Node::integer(1));
  try {
    require_memory(
        plan, *model, section,
        [&](const NamedParameter& each) { return optimizer.states_of(each); },
        /*is_double=*/false, ranks, StandInDevice::kDevice);
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

TEST(MemoryNeeds, OfAGpuAreThoseOfItsFreeMemory) {
  StandInDevice device({.total = 1000, .free = kNeeded});
  EXPECT_EQ(refusal_on({}), "none");
  device.set({.total = 1000, .free = kNeeded - 1});
  EXPECT_THAT(
      refusal_on({}),
      AllOf(
          HasSubstr("the model does not fit"), HasSubstr("the free memory of"),
          HasSubstr("the largest tensor is 'weight', [1, 3], 0.0 MiB (model.width). Use a smaller"),
          HasSubstr("or shard this one"), HasSubstr("on several ranks")));
}

/// Keeps one state of a matrix and two of a vector.
class OfTwoKinds : public tiny::Descent {
 public:
  int64_t states_of(const NamedParameter& parameter) const override {
    return parameter.tensor.dim() == 2 ? 1 : 2;
  }
};

TEST(MemoryNeeds, CountTheStatesOfEachParameter) {
  constexpr int64_t kStates = 12 + 2 * 4;  // a weight of three elements, and a bias
  StandInDevice device({.total = 1000, .free = kNeeded + kStates});
  EXPECT_EQ(refusal_on({}, {}, OfTwoKinds()), "none");
  device.set({.total = 1000, .free = kNeeded + kStates - 1});
  EXPECT_NE(refusal_on({}, {}, OfTwoKinds()), "none");
}

TEST(MemoryNeeds, OfAGpuAreThoseOfAllRanksOnIt) {
  const RankOutcome outcome = in_ranks(2, [](World& world) {
    StandInDevice device({.total = 1000, .free = 2 * kNeeded});
    require(refusal_on(world.ranks()) == "none", "they fit");
    device.set({.total = 1000, .free = 2 * kNeeded - 1});
    const std::string refusal = refusal_on(world.ranks());
    require(refusal.find(", shared by 2 ranks)") != std::string::npos, refusal);
    require(refusal.find("divides all three") != std::string::npos, refusal);
  });
  EXPECT_EQ(outcome, RankOutcome());
}

TEST(MemoryNeeds, OfRanksThatHoldUnlikePartsAreTheirMean) {
  const RankOutcome outcome = in_ranks(2, [](World& world) {
    constexpr int64_t kStates = 12 + 2 * 4;
    RunPlan plan;
    plan.has_fsdp = false;
    plan.held_parts = [](ModelBase& model, int64_t rank, int64_t /*ranks*/) {
      std::map<std::string, HeldParts> parts;
      for (const NamedParameter& each : named_parameters(model)) {
        parts[each.name] = {.state = rank == 0};
      }
      return parts;
    };
    StandInDevice device({.total = 1000, .free = 2 * kNeeded + kStates});
    require(refusal_on(world.ranks(), plan, OfTwoKinds()) == "none", "rank 0 alone has states");
    device.set({.total = 1000, .free = 2 * kNeeded + kStates - 1});
    const std::string refusal = refusal_on(world.ranks(), plan, OfTwoKinds());
    require(refusal.find("the mean rank of a host needs") != std::string::npos, refusal);
    require(refusal.find("or name: supervised with strategy: fsdp") != std::string::npos, refusal);
    require(refusal.find("parallel.use_fsdp") == std::string::npos, refusal);
  });
  EXPECT_EQ(outcome, RankOutcome());
}

TEST(MemoryNeeds, OfATrainerWithoutFsdpAdviseAnotherTrainer) {
  const StandInDevice device({.total = 1000, .free = 0});
  RunPlan plan;
  plan.has_fsdp = false;
  EXPECT_THAT(refusal_on({}, plan),
              AllOf(HasSubstr("an optimizer with less state, or name: supervised with strategy: "
                              "fsdp, which divides all three by the number of ranks"),
                    Not(HasSubstr("parallel.use_fsdp"))));
}

TEST(MemoryNeeds, OfWhatIsOffloadedAreThoseOfTheHost) {
  const StandInDevice device({.total = 1000, .free = 0});
  RunPlan plan;
  EXPECT_NE(refusal_on({}, plan), "none");
  plan.is_offloaded = [](const Ranks&) { return true; };
  EXPECT_EQ(refusal_on({}, plan), "none");
}

}  // namespace
}  // namespace phalanx
