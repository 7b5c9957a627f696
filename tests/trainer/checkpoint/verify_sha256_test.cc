// SPDX-License-Identifier: Apache-2.0
// What somebody changed together with all the checksums of ours has another SHA-256.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/trainer/checkpoint/example_run.h"
#include "tests/trainer/io/temporary_folder.h"
#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/checksum.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/checkpoint/format/sha256.h"
#include "trainer/checkpoint/load/verify.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class VerifySha256 : public testing::Test {
 protected:
  VerifySha256()
      : path_(save_checkpoint(folder_.path(), ExampleRun().snapshot(5), options()).path) {}

  static SaveOptions options() { return {.sha256 = true}; }

  /// Replaces the sums, and makes the manifest fit to them.
  void put_sums(const std::string& text) const {
    const std::string name(kSha256File);
    spill(path_ / name, text);
    Manifest manifest = load_manifest(path_);
    manifest.files[name] = {
        .size = text.size(), .head_bytes = text.size(), .head_checksum = checksum_of(text)};
    spill(path_ / kManifestFile, format_manifest(manifest));
  }

  TemporaryFolder folder_;
  std::filesystem::path path_;
};

TEST_F(VerifySha256, SumsThatFitAreRead) {
  ByteProgress progress;
  verify_checkpoint(path_, &progress);
  EXPECT_GT(progress.done, 2 * 64 * 16 * 4);
  EXPECT_EQ(progress.done, progress.all);
}

TEST_F(VerifySha256, AnotherSumIsFound) {
  auto sums = parse_sha256_sums(slurp(path_ / kSha256File));
  ASSERT_EQ(sums.size(), 3U);
  sums["optimizer.safetensors"] = sums["model.safetensors"];
  put_sums(format_sha256_sums(sums));
  EXPECT_THAT([&] { verify_checkpoint(path_); },
              ThrowsMessage<CheckpointError>(
                  AllOf(HasSubstr("optimizer.safetensors"), HasSubstr("its SHA-256 is not"))));
}

TEST_F(VerifySha256, AMissingSumIsFound) {
  auto sums = parse_sha256_sums(slurp(path_ / kSha256File));
  sums.erase("rng.safetensors");
  put_sums(format_sha256_sums(sums));
  EXPECT_THAT([&] { verify_checkpoint(path_); },
              ThrowsMessage<CheckpointError>(HasSubstr("rng.safetensors")));
}

}  // namespace
}  // namespace phalanx
