// SPDX-License-Identifier: Apache-2.0
#include "trainer/words/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace phalanx::words {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

TEST(Words, NameTheFieldAndHowItsMeaningDiffers) {
  EXPECT_EQ(explain("per_device_train_batch_size"),
            "per_device_train_batch_size (transformers) is here: training.batch_size (samples a "
            "rank and micro-batch)");
  EXPECT_EQ(explain("learning_rate"), "learning_rate (transformers) is here: optimizer.lr");
}

TEST(Words, SayWhyThereIsNoField) {
  EXPECT_EQ(explain("param_to_hook_all_reduce"),
            "param_to_hook_all_reduce (PyTorch DDP) has no field here: gradients are reduced as "
            "their buckets fill");
  EXPECT_EQ(explain("device_ids"),
            "device_ids (PyTorch DDP) has no field here: a rank has one device, chosen by its "
            "local rank; device_ids (PyTorch DDP) is here: parallel.data_parallel.devices (of "
            "DataParallel: GPUs of one process; ranks (strategy: ddp) are faster)");
}

TEST(Words, OfSeveralTrainersStandTogetherWhereTheyAgree) {
  EXPECT_EQ(explain("detect_anomaly"),
            "detect_anomaly (TorchTNT, Lightning, ml) is here: anomaly.detect (in the trainer "
            "supervised_debug)");
  const std::string several = explain("clip_grad_norm");
  EXPECT_THAT(several, HasSubstr("(TorchTNT, torchtune) is here: training.clip_grad_norm; "));
  EXPECT_THAT(several, HasSubstr("(ml) is here: training.clip_grad_norm (after the loss scale"));
}

TEST(Words, CountInWhateverSectionTheyStand) {
  EXPECT_EQ(explain("trainer.max_time"), explain("max_time"));
  EXPECT_EQ(explain("a.b.learning_rate"), explain("learning_rate"));
  EXPECT_EQ(explain("my_learning_rate"), "") << "another word that ends so";
}

TEST(Words, ThatAreAPathGoBeforeTheNameAlone) {
  EXPECT_THAT(explain("training.dtype"), HasSubstr("training.dtype (TorchTitan) is here: "
                                                   "use_double_weight_precision"));
  EXPECT_THAT(explain("training.dtype"), Not(HasSubstr("torchtune")));
  EXPECT_THAT(explain("dtype"), HasSubstr("dtype (torchtune) is here: mixed_precision.enabled"));
}

TEST(Words, LeaveTheOwnWordsOfModelsAndTasksAlone) {
  EXPECT_NE(explain("dim"), "");
  EXPECT_EQ(explain("model.dim"), "");
  EXPECT_EQ(explain("task.sampler"), "");
  EXPECT_NE(explain("model.lora_rank"), "");
  EXPECT_EQ(explain("lora.rank"), "");
  EXPECT_NE(explain("model._component_"), "");
}

TEST(Words, KnowTheirFieldsAndWhetherTheirSectionIsAPartOfThem) {
  EXPECT_THAT(look_up("learning_rate").fields, ElementsAre("optimizer.lr"));
  EXPECT_THAT(look_up("param_to_hook_all_reduce").fields, IsEmpty());
  EXPECT_FALSE(look_up("training.learning_rate").is_of_place);
  EXPECT_TRUE(look_up("training.dtype").is_of_place);
  for (const Peer* peer : peers()) {
    for (const Chapter& chapter : peer->chapters) {
      for (const Word& word : chapter.words) {
        for (const std::string& field : look_up(word.there).fields) {
          EXPECT_THAT(field, MatchesRegex("[a-z_.0-9A-Z]+")) << word.there;
        }
      }
    }
  }
}

TEST(Words, OfNobodyAreNotExplained) {
  EXPECT_EQ(explain("no_such_word"), "");
  EXPECT_EQ(explain(""), "");
}

TEST(Words, AreThoseOfNineTrainers) {
  std::size_t words = 0;
  for (const Peer* peer : peers()) {
    EXPECT_FALSE(peer->chapters.empty()) << peer->name;
    for (const Chapter& chapter : peer->chapters) {
      words += chapter.words.size();
      for (const Word& word : chapter.words) {
        EXPECT_FALSE(word.here.empty() && word.note.empty()) << word.there;
      }
    }
  }
  EXPECT_EQ(peers().size(), 9U);
  EXPECT_GT(words, 650U);
}

}  // namespace
}  // namespace phalanx::words
