// SPDX-License-Identifier: Apache-2.0
// Parts of a checkpoint beside model, optimizer and rng.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/tensors.h"
#include "tests/trainer/checkpoint/example_run.h"
#include "tests/trainer/checkpoint/sharded_run.h"
#include "tests/trainer/io/temporary_folder.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/checkpoint/load/verify.h"
#include "trainer/checkpoint/save/save.h"
#include "trainer/checkpoint/save/save_error.h"

namespace phalanx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::ThrowsMessage;

std::vector<StatePart> parts_of(int64_t rank, int64_t ranks) {
  return {{.name = "averages", .tensors = {nth("cut", 40'001, rank, ranks)}, .json = R"({"n":3})"},
          {.name = "stopping", .json = R"({"best":0.5})"}};
}

// Ranks are forked before LibTorch's operations start threads: this test comes first.
TEST(Parts, OpenOnAnotherNumberOfRanks) {
  const TemporaryFolder folder;
  const auto outcome = in_ranks(2, [&](World& world) {
    const int64_t mine = world.ranks().rank();
    Snapshot snapshot = snapshot_of(5, mine, 2);
    snapshot.parts = parts_of(mine, 2);
    save_checkpoint(folder.path(), snapshot, {.host = "host " + std::to_string(mine)},
                    world.ranks());
    if (mine != 0) return;
    const Checkpoint checkpoint = verify_checkpoint(folder / "step-00000005");
    for (const int64_t readers : {1, 2, 3}) {
      for (int64_t rank = 0; rank < readers; ++rank) {
        const Snapshot wanted = snapshot_of(0, rank, readers);
        std::vector<StatePart> read = parts_of(rank, readers);
        const ShardedTensorView& view = read[0].tensors[0];
        view.local.fill_(-1);
        load_checkpoint(checkpoint, wanted.model, wanted.optimizer, rank, nullptr, read);
        require(view.local.equal(tensors::arange(view.begin, view.end, at::kFloat)), "the values");
      }
    }
  });
  EXPECT_EQ(outcome.message, "");
}

class PartsOfOneRank : public testing::Test {
 protected:
  Checkpoint saved_with(std::vector<StatePart> parts) {
    Snapshot snapshot = run_.snapshot(7);
    snapshot.parts = std::move(parts);
    return verify_checkpoint(save_checkpoint(folder_.path(), snapshot, {.sha256 = true}).path);
  }

  TemporaryFolder folder_;
  ExampleRun run_;
};

TEST_F(PartsOfOneRank, HaveFilesAndValuesOfTheirOwn) {
  const Checkpoint checkpoint = saved_with(parts_of(0, 1));
  EXPECT_TRUE(checkpoint.manifest.files.contains("averages.safetensors"));
  EXPECT_FALSE(checkpoint.manifest.files.contains("stopping.safetensors"));
  EXPECT_THAT(checkpoint.manifest.parts,
              ElementsAre(Pair("averages", R"({"n":3})"), Pair("stopping", R"({"best":0.5})")));
  EXPECT_THAT(further_parts(checkpoint.manifest), ElementsAre("averages", "stopping"));
}

TEST_F(PartsOfOneRank, LeaveNoTraceWhereThereAreNone) {
  const Checkpoint with = saved_with(parts_of(0, 1));
  const std::string model = slurp(with.path / "model.safetensors");
  const std::string optimizer = slurp(with.path / "optimizer.safetensors");
  const Checkpoint without = saved_with({});
  EXPECT_THAT(slurp(without.path / kManifestFile), Not(HasSubstr("\"parts\"")));
  EXPECT_EQ(slurp(without.path / "model.safetensors"), model);
  EXPECT_EQ(slurp(without.path / "optimizer.safetensors"), optimizer);
  EXPECT_TRUE(further_parts(without.manifest).empty());
}

TEST_F(PartsOfOneRank, ThatTheCheckpointLacksStayAsTheyAre) {
  const Checkpoint checkpoint = saved_with({});
  const std::vector<StatePart> parts = parts_of(0, 1);
  parts[0].tensors[0].local.fill_(-1);
  load_checkpoint(checkpoint, run_.model(), run_.optimizer(), 0, nullptr, parts);
  EXPECT_TRUE(parts[0].tensors[0].local.eq(-1).all().item<bool>());
}

TEST_F(PartsOfOneRank, ThatTheRunLacksAreNotRead) {
  const Checkpoint checkpoint = saved_with(parts_of(0, 1));
  EXPECT_NO_THROW(load_checkpoint(checkpoint, run_.model(), run_.optimizer()));
}

TEST_F(PartsOfOneRank, ReplaceTheModelsValuesInItsMemory) {
  const at::Tensor others = tensors::full(run_.weight.sizes(), 7.0);
  const Checkpoint checkpoint =
      saved_with({{.name = "group", .tensors = {whole_tensor("weight", others)}}});
  const std::vector<StatePart> parts{
      {.name = "group", .tensors = {whole_tensor("weight", run_.weight)}}};
  load_checkpoint(checkpoint, run_.model(), run_.optimizer(), 0, nullptr, parts);
  EXPECT_TRUE(run_.weight.equal(others));
}

TEST_F(PartsOfOneRank, OfOtherShapesAreRefusedBeforeAnythingIsRead) {
  const Checkpoint checkpoint = saved_with(parts_of(0, 1));
  run_.weight.fill_(-1);
  const std::vector<StatePart> parts{{.name = "averages", .tensors = {nth("cut", 39, 0, 1)}}};
  EXPECT_THAT(
      [&] { load_checkpoint(checkpoint, run_.model(), run_.optimizer(), 0, nullptr, parts); },
      ThrowsMessage<UserError>(HasSubstr("averages tensor 'cut' is F32 [40001]")));
  EXPECT_TRUE(run_.weight.eq(-1).all().item<bool>());
}

TEST_F(PartsOfOneRank, HaveNamesThatNoOtherPartHas) {
  const auto save = [&](std::vector<std::string> names) {
    std::vector<StatePart> parts;
    for (auto& name : names) parts.push_back({.name = std::move(name), .json = "{}"});
    saved_with(std::move(parts));
  };
  EXPECT_THROW(save({"model"}), std::logic_error);
  EXPECT_THROW(save({"a", "a"}), std::logic_error);
  EXPECT_THROW(save({"a/b"}), std::logic_error);
  EXPECT_THROW(save({""}), std::logic_error);
}

TEST_F(PartsOfOneRank, AreNotSavedWithAStateThatIsNoJson) {
  EXPECT_THROW(saved_with({{.name = "a", .json = "no JSON"}}), SaveError);
}

}  // namespace
}  // namespace phalanx
