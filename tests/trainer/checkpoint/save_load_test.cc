// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/trainer/checkpoint/example_run.h"
#include "tests/trainer/io/temporary_folder.h"
#include "trainer/base/user_error.h"
#include "trainer/base/version.h"
#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/checksum.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/format/safetensors.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/checkpoint/load/verify.h"
#include "trainer/checkpoint/save/save.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::ThrowsMessage;
using testing::UnorderedElementsAre;

// Loads into a fresh run and says whether all of it is that step's.
bool loads_as(const Checkpoint& checkpoint, int64_t step) {
  ExampleRun run;
  run.rng = load_checkpoint(checkpoint, run.model(), run.optimizer()).rng_states.at("cpu");
  return run.is_at(step);
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

TEST(SaveCheckpoint, LeavesExactlyTheLayoutOfARun) {
  const TemporaryFolder folder;
  ExampleRun run;
  const SavedCheckpoint saved = save_checkpoint(folder / "checkpoints", run.snapshot(200));
  EXPECT_EQ(saved.path, folder / "checkpoints/step-00000200");
  EXPECT_THAT(names_in(folder / "checkpoints"), UnorderedElementsAre("step-00000200", "latest"));
  EXPECT_THAT(names_in(saved.path),
              UnorderedElementsAre("manifest.json", "model.safetensors", "optimizer.safetensors",
                                   "rng.safetensors"));
  EXPECT_EQ(slurp(folder / "checkpoints/latest"), "step-00000200\n");
  EXPECT_EQ(saved.bytes, fs::file_size(saved.path / "model.safetensors") +
                             fs::file_size(saved.path / "optimizer.safetensors") +
                             fs::file_size(saved.path / "rng.safetensors"));
  EXPECT_THAT(saved.warnings, IsEmpty());
}

TEST(SaveCheckpoint, ComesBackBitForBit) {
  const TemporaryFolder folder;
  ExampleRun run;
  const SavedCheckpoint saved = save_checkpoint(folder.path(), run.snapshot(200));
  const Checkpoint checkpoint = verify_checkpoint(saved.path);
  EXPECT_TRUE(loads_as(checkpoint, 200));
  EXPECT_EQ(checkpoint.manifest.state.samples, 1600);
  EXPECT_EQ(checkpoint.manifest.seed, 7U);
  EXPECT_EQ(checkpoint.manifest.data_fingerprint, "example");
  EXPECT_EQ(checkpoint.manifest.global_batch_size, 8);
  EXPECT_EQ(checkpoint.manifest.config, R"({"name":"supervised"})");
  EXPECT_EQ(checkpoint.manifest.phalanx_version, kVersion);
  EXPECT_THAT(checkpoint.manifest.torch_version, testing::StartsWith("2."));
}

TEST(SaveCheckpoint, TellsHowFarItIs) {
  const TemporaryFolder folder;
  ExampleRun run;
  ByteProgress progress;
  const SavedCheckpoint saved =
      save_checkpoint(folder.path(), run.snapshot(200), {.progress = &progress});
  const uint64_t held = local_bytes(run.model()) + local_bytes(run.optimizer());
  EXPECT_GT(progress.all, held);  // with the states of random numbers
  EXPECT_EQ(progress.done, progress.all);
  load_checkpoint(open_checkpoint(saved.path), run.model(), run.optimizer(), 0, &progress);
  EXPECT_EQ(progress.all, held);
  EXPECT_GE(progress.done, progress.all);
  save_checkpoint(folder.path(), run.snapshot(201), {.sha256 = true, .progress = &progress});
  EXPECT_GT(progress.all, 2 * held);
  EXPECT_EQ(progress.done, progress.all);
  load_model(open_checkpoint(saved.path), run.model(), &progress);
  EXPECT_EQ(progress.all, local_bytes(run.model()));
  EXPECT_EQ(progress.done, progress.all);
}

TEST(SaveCheckpoint, TheManifestSaysWhereEveryTensorStands) {
  const TemporaryFolder folder;
  ExampleRun run;
  const SavedCheckpoint saved = save_checkpoint(folder.path(), run.snapshot(3));
  const Manifest manifest = load_manifest(saved.path);
  ASSERT_EQ(manifest.tensors.size(), 4U);
  for (const ManifestTensor& tensor : manifest.tensors) {
    if (tensor.name != "h.0.weight") continue;
    ASSERT_EQ(tensor.slices.size(), 1U);
    const ManifestSlice& slice = tensor.slices.front();
    const std::string bytes =
        slurp(saved.path / slice.file).substr(slice.offset, run.weight.nbytes());
    EXPECT_EQ(bytes, std::string_view(static_cast<const char*>(run.weight.data_ptr()),
                                      run.weight.nbytes()));
    EXPECT_EQ(slice.end, run.weight.numel());
    EXPECT_THAT(slice.checksums, ElementsAre(checksum_of(bytes)));
  }
}

TEST(SaveCheckpoint, TheSameStepAgainReplacesIt) {
  const TemporaryFolder folder;
  ExampleRun run;
  save_checkpoint(folder.path(), run.snapshot(200));
  Snapshot again = run.snapshot(200);
  run.bias.fill_(-1);
  save_checkpoint(folder.path(), again);
  ExampleRun loaded;
  load_model(open_checkpoint(candidates(folder.path()).front()), loaded.model());
  EXPECT_TRUE(loaded.bias.equal(run.bias));
  EXPECT_THAT(names_in(folder.path()), UnorderedElementsAre("step-00000200", "latest"));
}

TEST(SaveCheckpoint, KeepsTheLastAndTheOneResumedFrom) {
  const TemporaryFolder folder;
  ExampleRun run;
  for (int64_t step = 1; step <= 6; ++step) {
    save_checkpoint(folder.path(), run.snapshot(step),
                    {.retention = {.keep_last = 2, .resumed_step = 2}});
  }
  EXPECT_THAT(names_in(folder.path()),
              UnorderedElementsAre("step-00000002", "step-00000005", "step-00000006", "latest"));
}

TEST(SaveCheckpoint, WithoutALimitAllStay) {
  const TemporaryFolder folder;
  ExampleRun run;
  for (int64_t step = 1; step <= 5; ++step) save_checkpoint(folder.path(), run.snapshot(step));
  EXPECT_EQ(committed_steps(folder.path()).size(), 5U);
}

TEST(SaveCheckpoint, AMistakeOfTheCallerLeavesNothing) {
  const TemporaryFolder folder;
  ExampleRun run;
  Snapshot snapshot = run.snapshot(1);
  snapshot.model.push_back(snapshot.model.front());
  EXPECT_THROW(save_checkpoint(folder.path(), snapshot), std::logic_error);
  EXPECT_THROW(save_checkpoint(folder.path(), run.snapshot(1), {.retention = {.keep_last = 0}}),
               std::logic_error);
  EXPECT_THAT(names_in(folder.path()), IsEmpty());
}

TEST(SaveCheckpoint, AnOptimizerWithoutStateIsFine) {
  const TemporaryFolder folder;
  ExampleRun run;
  Snapshot snapshot = run.snapshot(1);
  snapshot.optimizer.clear();
  save_checkpoint(folder.path(), snapshot);
  ExampleRun loaded;
  load_checkpoint(open_checkpoint(candidates(folder.path()).front()), loaded.model(), {});
  EXPECT_TRUE(loaded.weight.equal(run.weight));
}

std::string load_error(const Checkpoint& checkpoint, const std::vector<ShardedTensorView>& model,
                       const std::vector<ShardedTensorView>& optimizer) {
  try {
    load_checkpoint(checkpoint, model, optimizer);
  } catch (const UserError& error) {
    return error.what();
  }
  return "loaded";
}

class LoadInto : public testing::Test {
 protected:
  LoadInto() {
    ExampleRun run;
    checkpoint_ = verify_checkpoint(save_checkpoint(folder_.path(), run.snapshot(5)).path);
    fresh_.set_to(0);
  }

  TemporaryFolder folder_;
  Checkpoint checkpoint_;
  ExampleRun fresh_;
};

TEST_F(LoadInto, OtherNamesAreListedWithTheNearest) {
  auto model = fresh_.model();
  model[0].name = "h.0.wieght";
  const std::string message = load_error(checkpoint_, model, fresh_.optimizer());
  EXPECT_THAT(message,
              AllOf(HasSubstr("missing model tensor 'h.0.wieght' (nearest: 'h.0.weight')"),
                    HasSubstr("unexpected model tensor 'h.0.weight' (nearest: 'h.0.wieght')"),
                    HasSubstr(checkpoint_.path.string()), HasSubstr("use the config")));
}

TEST_F(LoadInto, OtherShapesAndDtypesAreListed) {
  auto model = fresh_.model();
  model[0] = whole_tensor("h.0.weight", tensors::zeros({64, 32}));
  auto optimizer = fresh_.optimizer();
  optimizer[0] = whole_tensor(optimizer[0].name, tensors::zeros({64, 16}, at::kDouble));
  const std::string message = load_error(checkpoint_, model, optimizer);
  EXPECT_THAT(message,
              AllOf(HasSubstr("model tensor 'h.0.weight' is F32 [64, 16] in the checkpoint, F32 "
                              "[64, 32] here"),
                    HasSubstr("optimizer tensor 'h.0.weight.exp_avg' is F32 [64, 16] in the "
                              "checkpoint, F64 [64, 16] here")));
}

TEST_F(LoadInto, ManyDifferencesAreCounted) {
  std::vector<ShardedTensorView> model;
  for (int i = 0; i < 25; ++i) {
    model.push_back(whole_tensor("other." + std::to_string(i), tensors::zeros({1})));
  }
  EXPECT_THAT(load_error(checkpoint_, model, fresh_.optimizer()), HasSubstr("and 15 more"));
}

// As where another optimizer is chosen: the tensors of one parameter would not name all states.
TEST_F(LoadInto, EachStateOfAnotherOptimizerIsNamed) {
  std::vector<ShardedTensorView> optimizer;
  for (int layer = 10; layer < 35; ++layer) {
    for (const char* state : {".sum", ".step"}) {
      optimizer.push_back(whole_tensor("h." + std::to_string(layer) + state, tensors::zeros({1})));
    }
  }
  const std::string message = load_error(checkpoint_, fresh_.model(), optimizer);
  EXPECT_THAT(
      message,
      AllOf(HasSubstr("\n  missing optimizer tensors 'step': 'h.10.step' to "
                      "'h.34.step', 25 in all\n"
                      "  missing optimizer tensors 'sum': 'h.10.sum' to "
                      "'h.34.sum', 25 in all\n"
                      "  unexpected optimizer tensor 'h.0.weight.exp_avg'"),
            HasSubstr("with its model alone: checkpoint.load_from=" + checkpoint_.path.string() +
                      " checkpoint.load_model_only=true and another exp_dir")));
  auto model = fresh_.model();
  model[0].name = "other";
  EXPECT_THAT(load_error(checkpoint_, model, optimizer), Not(HasSubstr("model alone")));
}

TEST_F(LoadInto, NothingIsWrittenUnlessEverythingFits) {
  auto optimizer = fresh_.optimizer();
  optimizer[0].name = "another";
  load_error(checkpoint_, fresh_.model(), optimizer);
  EXPECT_TRUE(fresh_.is_at(0));
}

TEST_F(LoadInto, APartIsFilledWithItsRange) {
  ExampleRun expected;
  expected.set_to(5);
  auto model = fresh_.model();
  model[0].begin = 3;
  model[0].end = 10;
  model[0].local = tensors::zeros({7}, model[0].local.options());
  load_checkpoint(checkpoint_, model, fresh_.optimizer());
  EXPECT_TRUE(model[0].local.equal(expected.model()[0].local.reshape(-1).slice(0, 3, 10)));
}

TEST_F(LoadInto, ViewsThatHoldAnythingElseThanTheirRangeAreRefused) {
  for (const auto& [begin, end] : {std::pair{0, 10}, {-1, 2}, {5, 4}, {1, 100'000'000}}) {
    auto model = fresh_.model();
    model[0].begin = begin;
    model[0].end = end;
    EXPECT_THROW(load_checkpoint(checkpoint_, model, fresh_.optimizer()), std::logic_error);
    EXPECT_TRUE(fresh_.is_at(0));
  }
}

TEST_F(LoadInto, TheModelAloneNeedsNoOptimizer) {
  load_model(checkpoint_, fresh_.model());
  ExampleRun expected;
  expected.set_to(5);
  EXPECT_TRUE(fresh_.weight.equal(expected.weight));
  EXPECT_TRUE(fresh_.bias.equal(expected.bias));
}

TEST_F(LoadInto, NoMoreIsReadThanIsFilled) {
  const Loaded loaded = load_model(checkpoint_, fresh_.model());
  EXPECT_EQ(loaded.bytes_read, fresh_.weight.nbytes() + fresh_.bias.nbytes());
}

// Both are sound by themselves, as after a forgery.
TEST_F(LoadInto, AFileThatDisagreesWithItsManifestIsRefused) {
  ExampleRun run;
  run.set_to(5);
  fs::remove(checkpoint_.path / "model.safetensors");
  auto model = run.model();
  model[1].name = "h.0.bios";
  write_safetensors(checkpoint_.path / "model.safetensors", model);
  Manifest& manifest = checkpoint_.manifest;
  const std::string bytes = slurp(checkpoint_.path / "model.safetensors");
  ManifestFile& file = manifest.files.at("model.safetensors");
  ASSERT_EQ(file.size, bytes.size());
  file.head_checksum = checksum_of(std::string_view(bytes).substr(0, file.head_bytes));
  spill(checkpoint_.path / "manifest.json", format_manifest(manifest));
  EXPECT_THAT([&] { verify_checkpoint(checkpoint_.path); },
              ThrowsMessage<CheckpointError>(HasSubstr("disagree on model tensor 'h.0.bias'")));
}

}  // namespace
}  // namespace phalanx
