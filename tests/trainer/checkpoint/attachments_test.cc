// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/format/attachments.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/checkpoint/example_run.h"
#include "tests/trainer/io/temporary_folder.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/checkpoint/format/sha256.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/checkpoint/load/verify.h"
#include "trainer/checkpoint/save/save.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::ThrowsMessage;

Attachments example() {
  using namespace std::string_literals;
  return {{.name = "tokenizer.json", .content = "{\"a\": 1}\r\n"},
          {.name = "tokenizer.model", .content = "\0\n\x0a\xff binary"s},
          {.name = "merges.txt", .content = ""}};
}

std::string text_of(const Attachment& attachment) {
  return attachment.name + ": " + attachment.content;
}

std::vector<std::string> texts_of(const Attachments& attachments) {
  std::vector<std::string> texts;
  for (const Attachment& attachment : attachments) texts.push_back(text_of(attachment));
  return texts;
}

fs::path save(const fs::path& folder, int64_t step, Attachments attachments,
              const SaveOptions& options = {}) {
  Snapshot snapshot = ExampleRun().snapshot(step);
  snapshot.attachments = std::make_shared<const Attachments>(std::move(attachments));
  return save_checkpoint(folder, snapshot, options).path;
}

TEST(Attachments, ComeBackByteForByte) {
  const TemporaryFolder folder;
  const fs::path path = save(folder.path(), 3, example());
  EXPECT_EQ(slurp(path / "attachments/tokenizer.model"), example()[1].content);
  const Checkpoint checkpoint = verify_checkpoint(path);
  // In the order of their names.
  EXPECT_THAT(texts_of(read_attachments(checkpoint)),
              ElementsAre(text_of(example()[2]), text_of(example()[0]), text_of(example()[1])));
  EXPECT_EQ(load_newest(folder.path()).step, 3);
}

TEST(Attachments, TheSameRunWritesTheSame) {
  const TemporaryFolder folder;
  const fs::path one = save(folder / "one", 3, example());
  const fs::path two = save(folder / "two", 3, example());
  EXPECT_EQ(slurp(one / kManifestFile), slurp(two / kManifestFile));
}

TEST(Attachments, WithoutAnyTheCheckpointIsAsBefore) {
  const TemporaryFolder folder;
  const fs::path path = save(folder.path(), 3, {});
  EXPECT_FALSE(fs::exists(path / kAttachmentsFolder));
  EXPECT_THAT(slurp(path / kManifestFile), Not(HasSubstr("attachments")));
  EXPECT_THAT(read_attachments(verify_checkpoint(path)), IsEmpty());
}

TEST(Attachments, GoWithTheirCheckpoint) {
  const TemporaryFolder folder;
  const fs::path first = save(folder.path(), 1, example(), {.retention = {.keep_last = 1}});
  save(folder.path(), 2, example(), {.retention = {.keep_last = 1}});
  EXPECT_FALSE(fs::exists(first));
  EXPECT_THAT(committed_steps(folder.path()), ElementsAre(2));
}

TEST(Attachments, OneThatCannotBeWrittenLeavesNoCheckpoint) {
  const TemporaryFolder folder;
  save(folder.path(), 1, example());
  EXPECT_THROW(save(folder.path(), 2, {{.name = std::string(300, 'n'), .content = "x"}}),
               SaveError);
  EXPECT_THAT(committed_steps(folder.path()), ElementsAre(1));
  EXPECT_EQ(load_newest(folder.path()).step, 1);
}

using Damage = std::function<void(const fs::path& attachments)>;

class DamagedAttachment : public testing::TestWithParam<std::pair<const char*, Damage>> {};

TEST_P(DamagedAttachment, IsFoundAndNamed) {
  const TemporaryFolder folder;
  save(folder.path(), 1, example());
  const fs::path path = save(folder.path(), 2, example());
  GetParam().second(path / kAttachmentsFolder);
  EXPECT_ANY_THROW(verify_checkpoint(path));
  EXPECT_THAT([&] { read_attachments(open_checkpoint(path)); },
              ThrowsMessage<CheckpointError>(AllOf(HasSubstr((path / kAttachmentsFolder).string()),
                                                   HasSubstr("put the file back from a copy"))));
  const FoundRun found = load_newest(folder.path());
  EXPECT_EQ(found.step, 1);
  EXPECT_THAT(found.warnings,
              ElementsAre(AllOf(HasSubstr("skipped step-00000002"), HasSubstr("attachments"))));
}

INSTANTIATE_TEST_SUITE_P(
    , DamagedAttachment,
    testing::Values(
        std::pair("cut",
                  [](const fs::path& folder) { fs::resize_file(folder / "tokenizer.json", 3); }),
        std::pair("longer",
                  [](const fs::path& folder) { fs::resize_file(folder / "merges.txt", 1); }),
        std::pair("changed",
                  [](const fs::path& folder) {
                    spill(folder / "tokenizer.json", "{\"a\": 2}\r\n");
                  }),
        std::pair("missing", [](const fs::path& folder) { fs::remove(folder / "merges.txt"); }),
        std::pair("without_folder", [](const fs::path& folder) { fs::remove_all(folder); }),
        std::pair("link",
                  [](const fs::path& folder) {
                    fs::rename(folder / "tokenizer.json", folder / "elsewhere");
                    fs::create_symlink("elsewhere", folder / "tokenizer.json");
                  }),
        std::pair("linked_folder",
                  [](const fs::path& folder) {
                    const fs::path elsewhere = folder.parent_path() / "elsewhere";
                    fs::rename(folder, elsewhere);
                    fs::create_directory_symlink(elsewhere, folder);
                  })),
    [](const auto& info) { return info.param.first; });

TEST(Attachments, HaveSha256SumsToo) {
  const TemporaryFolder folder;
  const fs::path path = save(folder.path(), 1, example(), {.sha256 = true});
  auto sums = parse_sha256_sums(slurp(path / kSha256File));
  EXPECT_EQ(sums.at("attachments/tokenizer.json"), sha256_of(path / "attachments/tokenizer.json"));
  EXPECT_EQ(sums.size(), 6U);
  verify_checkpoint(path);
}

std::string refusal(const Attachments& attachments) {
  try {
    require_attachable(attachments);
  } catch (const UserError& error) {
    return error.what();
  }
  return "taken";
}

TEST(Attachments, NamesThatCannotBeCarriedAreRefused) {
  EXPECT_EQ(refusal(example()), "taken");
  for (const char* name :
       {"", ".", "..", "a/b", "/a", "../a", ".hidden", "a\nb", "a\\b", "config.json",
        "manifest.json", "SHA256SUMS", "model.safetensors", "model.safetensors.index.json"}) {
    EXPECT_THAT(refusal({{.name = name, .content = "x"}}),
                HasSubstr(fmt::format("a checkpoint cannot carry a file named '{}'", name)));
  }
  EXPECT_THAT(refusal({{.name = "a", .content = ""}, {.name = "a", .content = ""}}),
              HasSubstr("two files named 'a'"));
}

TEST(Attachments, ARunGoesOnWithTheSameOnly) {
  const TemporaryFolder folder;
  const Checkpoint carrying = open_checkpoint(save(folder / "with", 1, example()));
  const Checkpoint older = open_checkpoint(save(folder / "without", 1, {}));
  require_same_attachments(carrying, example());
  require_same_attachments(older, example());
  require_same_attachments(older, {});
  Attachments other = example();
  other[0].content = "{\"a\": 2}\r\n";
  other[1].name = "spiece.model";
  EXPECT_THAT([&] { require_same_attachments(carrying, other); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("'tokenizer.json' is another file there"),
                                             HasSubstr("'spiece.model' is not in it"),
                                             HasSubstr("'tokenizer.model' is missing here"),
                                             HasSubstr((carrying.path / "attachments").string()))));
  EXPECT_THROW(require_same_attachments(carrying, {}), UserError);
  // Those that only go along need not be there, but must not differ.
  const std::set<std::string> along{"tokenizer.model"};
  Attachments without = example();
  without.erase(without.begin() + 1);
  require_same_attachments(carrying, without, along);
  Attachments changed = example();
  changed[1].content = "x";
  EXPECT_THROW(require_same_attachments(carrying, changed, along), UserError);
}

}  // namespace
}  // namespace phalanx
