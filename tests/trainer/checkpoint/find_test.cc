#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/checkpoint/example_run.h"
#include "tests/trainer/core/io/temporary_folder.h"
#include "trainer/checkpoint/checkpoint_error.h"
#include "trainer/checkpoint/layout.h"
#include "trainer/checkpoint/load.h"
#include "trainer/checkpoint/save.h"
#include "trainer/config/user_error.h"

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
  int64_t found() const {
    const FoundCheckpoint found = find_latest(folder_.path());
    return found.newest ? found.newest->manifest.state.step : -1;
  }

  TemporaryFolder folder_;
  ExampleRun run_;
};

TEST_F(Find, NothingInAnEmptyOrMissingFolder) {
  EXPECT_EQ(found(), -1);
  EXPECT_EQ(find_latest(folder_ / "none").newest, std::nullopt);
}

TEST_F(Find, TheOneThatLatestNames) {
  save({100, 200, 300});
  EXPECT_EQ(found(), 300);
  EXPECT_THAT(find_latest(folder_.path()).warnings, IsEmpty());
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
      const FoundCheckpoint found = find_latest(folder_.path());
      ASSERT_TRUE(found.newest);
      EXPECT_EQ(found.newest->manifest.state.step, 100) << file;
      EXPECT_THAT(found.warnings,
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
  EXPECT_EQ(found(), -1);
}

TEST_F(Find, LatestMayNameAMissingOneOrNothing) {
  save({100, 200});
  spill(folder_ / "latest", "step-00000300\n");
  EXPECT_EQ(found(), 200);
  EXPECT_THAT(find_latest(folder_.path()).warnings,
              ElementsAre(AllOf(HasSubstr("step-00000300"), HasSubstr("no checkpoint"))));
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

TEST_F(Find, AllDamagedFindsNothingAndSaysWhy) {
  save({100, 200});
  fs::remove(step(100) / "rng.safetensors");
  fs::remove(step(200) / "rng.safetensors");
  EXPECT_EQ(found(), -1);
  EXPECT_EQ(find_latest(folder_.path()).warnings.size(), 2U);
}

TEST_F(Find, APathMayBeACheckpointItsFolderOrTheRun) {
  save_checkpoint(folder_ / "checkpoints", run_.snapshot(100));
  save_checkpoint(folder_ / "checkpoints", run_.snapshot(200));
  const auto step_at = [&](const fs::path& path) {
    return find_checkpoint(path).newest.value().manifest.state.step;
  };
  EXPECT_EQ(step_at(folder_.path()), 200);
  EXPECT_EQ(step_at(folder_ / "checkpoints"), 200);
  EXPECT_EQ(step_at(folder_ / "checkpoints/step-00000100"), 100);
}

TEST_F(Find, APathWithoutOneSaysWhatIsWanted) {
  EXPECT_THAT([&] { find_checkpoint(folder_.path()); },
              ThrowsMessage<UserError>(
                  AllOf(HasSubstr("no usable checkpoint"), HasSubstr(folder_.path().string()))));
  save({100});
  fs::remove(step(100) / "rng.safetensors");
  EXPECT_THAT([&] { find_checkpoint(folder_.path()); },
              ThrowsMessage<UserError>(HasSubstr("rng.safetensors")));
}

}  // namespace
}  // namespace phalanx
