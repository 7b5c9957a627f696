// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/nearest.h"

#include <gtest/gtest.h>

namespace phalanx {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("adam", "adam"), 0u);
  EXPECT_EQ(edit_distance("adam", ""), 4u);
  EXPECT_EQ(edit_distance("adam", "adams"), 1u);
  EXPECT_EQ(edit_distance("adam", "dam"), 1u);
  EXPECT_EQ(edit_distance("adam", "odam"), 1u);
  EXPECT_EQ(edit_distance("adam", "daam"), 1u);
  EXPECT_EQ(edit_distance("ca", "abc"), 3u);  // A swapped pair is not edited again.
}

TEST(EditDistance, IgnoresCaseAndIsSymmetric) {
  EXPECT_EQ(edit_distance("AdamW", "adamw"), 0u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), edit_distance("sitting", "kitten"));
}

TEST(Nearest, FindsAMisspelling) {
  const std::vector<std::string> names = {"warmup_steps", "lr", "betas", "weight_decay"};
  EXPECT_EQ(nearest("warmup_step", names), "warmup_steps");
  EXPECT_EQ(nearest("warmupsteps", names), "warmup_steps");
  EXPECT_EQ(nearest("warmup", names), "warmup_steps");
  EXPECT_EQ(nearest("lrr", names), "lr");
  EXPECT_EQ(nearest("beats", names), "betas");
}

TEST(Nearest, KnowsWhatOtherProgramsCallTheSame) {
  EXPECT_EQ(nearest("bfloat16", {"fp16", "bf16"}), "bf16");
  EXPECT_EQ(nearest("fp16", {"bfloat16", "float16"}), "float16");
  EXPECT_EQ(nearest("rank", {"lora_alpha", "r"}), "r");
}

TEST(Nearest, SaysNothingOfWhatIsFarOff) {
  const std::vector<std::string> names = {"warmup_steps", "lr", "betas"};
  EXPECT_EQ(nearest("momentum", names), std::nullopt);
  EXPECT_EQ(nearest("x", names), std::nullopt);
  EXPECT_EQ(nearest("", names), std::nullopt);
  EXPECT_EQ(nearest("lr", {}), std::nullopt);
}

TEST(Nearest, BearsVeryLongNames) {
  EXPECT_EQ(nearest(std::string(1 << 20, 'a'), {"lr"}), std::nullopt);
}

TEST(ByNearness, KeepsTheOrderOfEquallyNearOnes) {
  EXPECT_EQ(by_nearness("b", {"xyz", "c", "a", "b"}),
            (std::vector<std::string>{"b", "c", "a", "xyz"}));
}

TEST(UnknownName, ListsWhatThereIsNearestFirst) {
  EXPECT_EQ(unknown_name("optimizer", "adamw2", {"sgd", "adam", "adamw"}),
            "unknown optimizer 'adamw2'; did you mean 'adamw'? There are: adamw, adam, sgd");
  EXPECT_EQ(unknown_name("optimizer", "AdamW", {"sgd", "adam", "adamw"}),
            "unknown optimizer 'AdamW'; did you mean 'adamw'? There are: adamw, adam, sgd");
  EXPECT_EQ(unknown_name("optimizer", "newton", {"sgd", "adam"}),
            "unknown optimizer 'newton'; there are: sgd, adam");
  EXPECT_EQ(unknown_name("task", "x", {}), "unknown task 'x'; there is none");
}

TEST(Nearest, KnowsAbbreviationsAndLastWords) {
  const std::vector<std::string> names = {"lr", "weight_decay", "max_epochs", "max_steps"};
  EXPECT_EQ(nearest("learning_rate", names), "lr");
  EXPECT_EQ(nearest("wd", names), "weight_decay");
  EXPECT_EQ(nearest("epochs", names), "max_epochs");
  EXPECT_EQ(nearest("run_max_steps", {"max_steps"}), "max_steps");
  EXPECT_EQ(nearest("", names), std::nullopt);
  EXPECT_EQ(nearest("s", names), std::nullopt);
}

TEST(UnknownClass, SaysWhereOneOfYourOwnBelongsUnlessItLooksMistyped) {
  EXPECT_EQ(unknown_class("optimizer", "adamv", {"adam", "sgd"}),
            unknown_name("optimizer", "adamv", {"adam", "sgd"}));
  EXPECT_EQ(unknown_class("optimizer", "mine_alone", {"adam", "sgd"}),
            unknown_name("optimizer", "mine_alone", {"adam", "sgd"}) +
                "; for one of your own, name its library in the deps of this program's "
                "trainer_binary");
}

}  // namespace
}  // namespace phalanx
