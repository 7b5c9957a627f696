// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/checkpoint/example_run.h"
#include "tests/trainer/io/temporary_folder.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/load/load_first_good.h"
#include "trainer/checkpoint/load/verify.h"
#include "trainer/checkpoint/save/save.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

class Find : public testing::Test {
 protected:
  void save(std::initializer_list<int64_t> steps) {
    for (const int64_t step : steps) save_checkpoint(folder_.path(), run_.snapshot(step));
  }
  fs::path step(int64_t number) const { return folder_.path() / step_folder_name(number); }

  // The step that is found; -1 for none.
  int64_t found() const { return load_newest(folder_.path()).step; }

  std::vector<std::string> warnings() const { return load_newest(folder_.path()).warnings; }

  // Why none can be used.
  std::string refusal() const {
    try {
      load_newest(folder_.path());
    } catch (const CheckpointError& error) {
      return error.what();
    }
    return "loaded";
  }

  TemporaryFolder folder_;
  ExampleRun run_;
};

TEST_F(Find, NothingInAnEmptyOrMissingFolder) {
  EXPECT_EQ(found(), -1);
  EXPECT_EQ(load_newest(folder_ / "none").step, -1);
}

TEST_F(Find, TheOneThatLatestNames) {
  save({100, 200, 300});
  EXPECT_EQ(found(), 300);
  EXPECT_THAT(warnings(), IsEmpty());
}

TEST_F(Find, EveryDamagedFileIsNoticedAndSkippedWithAReason) {
  for (const char* file :
       {"manifest.json", "model.safetensors", "optimizer.safetensors", "rng.safetensors"}) {
    save({100, 200});
    const fs::path path = step(200) / file;
    const std::string sound = slurp(path);
    std::string flipped = sound;
    flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 0x10);
    for (const std::string& bytes :
         {sound.substr(0, sound.size() - 1), sound.substr(0, 4), std::string(), sound + "x",
          flipped, std::string(sound.size(), '\0')}) {
      spill(path, bytes);
      EXPECT_EQ(found(), 100) << file;
      EXPECT_THAT(warnings(),
                  ElementsAre(AllOf(HasSubstr("skipped step-00000200"), HasSubstr(file))));
    }
    fs::remove(path);
    EXPECT_EQ(found(), 100) << file;
  }
}

TEST_F(Find, AFileOfAnotherStepIsNoticed) {
  save({100, 200});
  fs::copy_file(step(100) / "model.safetensors", step(200) / "model.safetensors",
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(found(), 100);
}

TEST_F(Find, AFolderUnderAnotherStepsNameIsNoticed) {
  save({100});
  fs::copy(step(100), step(200));
  EXPECT_THAT([&] { verify_checkpoint(step(200)); },
              ThrowsMessage<CheckpointError>(HasSubstr("holds the manifest of step 100")));
}

TEST_F(Find, ASymbolicLinkIsNotFollowed) {
  save({100});
  fs::rename(step(100) / "model.safetensors", folder_ / "elsewhere");
  fs::create_symlink(folder_ / "elsewhere", step(100) / "model.safetensors");
  EXPECT_THAT(refusal(), HasSubstr("symbolic link"));
}

TEST_F(Find, LatestMayNameAMissingOneOrNothing) {
  save({100, 200});
  spill(folder_ / "latest", "step-00000300\n");
  EXPECT_EQ(found(), 200);
  EXPECT_THAT(warnings(),
              ElementsAre(AllOf(HasSubstr("step-00000300"), HasSubstr("removed meanwhile"))));
  spill(folder_ / "latest", "gibberish");
  EXPECT_EQ(found(), 200);
  fs::remove(folder_ / "latest");
  EXPECT_EQ(found(), 200);
}

TEST_F(Find, ACommitJustBeforeLatestMovedCounts) {
  save({100, 200});
  spill(folder_ / "latest", "step-00000100\n");
  EXPECT_EQ(found(), 200);
}

TEST_F(Find, ACourseThatWasGivenUpDoesNotCount) {
  save({100, 200, 300});
  // Resumed from 100 on purpose; then 150 was saved.
  save({150});
  EXPECT_EQ(found(), 150);
  // 150 fails: 100 is what it came after, 300 would be of the other course.
  fs::remove(step(150) / "manifest.json");
  EXPECT_EQ(found(), 100);
  // But better the other course than nothing.
  fs::remove_all(step(100));
  EXPECT_EQ(found(), 300);
}

TEST_F(Find, AllDamagedIsAnErrorThatSaysWhyOfEach) {
  save({100, 200});
  fs::remove(step(100) / "rng.safetensors");
  fs::remove(step(200) / "rng.safetensors");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("none of the checkpoints"), HasSubstr("step-00000100"),
                               HasSubstr("step-00000200")));
}

TEST_F(Find, APathMayBeACheckpointItsFolderOrTheRun) {
  save_checkpoint(folder_ / "checkpoints", run_.snapshot(100));
  save_checkpoint(folder_ / "checkpoints", run_.snapshot(200));
  const auto name_at = [&](const fs::path& path) {
    return candidates_at(path).front().filename().string();
  };
  EXPECT_EQ(name_at(folder_.path()), "step-00000200");
  EXPECT_EQ(name_at(folder_ / "checkpoints"), "step-00000200");
  EXPECT_EQ(name_at(folder_ / "checkpoints/step-00000100"), "step-00000100");
}

TEST_F(Find, APathWithoutOneSaysWhatIsWanted) {
  EXPECT_THAT([&] { candidates_at(folder_.path()); },
              ThrowsMessage<UserError>(
                  AllOf(HasSubstr("no checkpoint in"), HasSubstr(folder_.path().string()))));
}

TEST_F(Find, AMistakeOfTheUserIsNotTakenForDamage) {
  save({100, 200});
  const auto refuse = [](const Checkpoint&) { throw UserError("another config"); };
  EXPECT_THAT([&] { load_first_good({}, candidates(folder_.path()), refuse); },
              ThrowsMessage<UserError>(HasSubstr("another config")));
}

// As where a training that keeps one checkpoint saves the next while this one is read.
TEST_F(Find, LooksAgainWhereThoseThatWereListedAreGone) {
  save({100, 200});
  const std::vector<fs::path> listed = candidates(folder_.path());
  const auto load = [&](const Checkpoint& checkpoint) {
    if (checkpoint.manifest.state.step == 300) return;
    fs::remove_all(step(100));
    fs::remove_all(step(200));
    save({300});
    throw CheckpointError("a file is gone");
  };
  EXPECT_THROW(load_first_good({}, listed, load), CheckpointError);
  fs::remove_all(step(300));
  save({200});
  const LoadedCheckpoint loaded =
      load_first_good({}, candidates(folder_.path()), load,
                      {.list_again = [&] { return candidates(folder_.path()); }});
  EXPECT_EQ(loaded.checkpoint->manifest.state.step, 300);
  EXPECT_THAT(loaded.warnings, ElementsAre("skipped step-00000200: it was removed meanwhile"));
}

TEST_F(Find, TellsWhatWasSkippedWhereLookingAgainFails) {
  save({100, 200});
  const std::vector<fs::path> listed = candidates(folder_.path());
  spill(step(200) / "manifest.json", "{}");
  fs::remove_all(step(100));
  const auto list_again = []() -> std::vector<fs::path> { throw UserError("no checkpoints here"); };
  const auto load = [](const Checkpoint&) {};
  EXPECT_THAT([&] { load_first_good({}, listed, load, {.list_again = list_again}); },
              ThrowsMessage<CheckpointError>(
                  AllOf(HasSubstr("skipped step-00000200: "), HasSubstr("manifest.json"),
                        HasSubstr("; skipped step-00000100: it was removed meanwhile"),
                        HasSubstr("; looking again: no checkpoints here"))));
}

TEST_F(Find, EndsWhereLookingAgainFindsNothingNew) {
  save({100});
  int looks = 0;
  const auto list_again = [&] {
    ++looks;
    return candidates(folder_.path());
  };
  const auto refuse = [](const Checkpoint&) { throw CheckpointError("damaged"); };
  EXPECT_THROW(load_first_good({}, candidates(folder_.path()), refuse, {.list_again = list_again}),
               CheckpointError);
  EXPECT_EQ(looks, 1);
}

}  // namespace
}  // namespace phalanx
