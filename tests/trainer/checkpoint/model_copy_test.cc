// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/load/model_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "tests/tensors.h"
#include "tests/trainer/io/temporary_folder.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/checked_file.h"
#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/format/open_safetensors.h"
#include "trainer/checkpoint/format/safetensors.h"
#include "trainer/checkpoint/load/verify.h"
#include "trainer/checkpoint/save/save.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class ModelCopies : public testing::Test {
 protected:
  ModelCopies() {
    Snapshot snapshot;
    snapshot.model = {whole_tensor("a", a_), whole_tensor("b", b_), whole_tensor("none", none_)};
    snapshot.optimizer = {whole_tensor("a.m", a_)};
    checkpoint_ = open_checkpoint(save_checkpoint(folder_ / "from", snapshot).path);
    std::filesystem::create_directory(to_);
  }

  /// All tensors of the model, their names with an x before, reals in this dtype.
  std::vector<CopiedTensor> all(at::ScalarType dtype) const {
    std::vector<CopiedTensor> tensors;
    for (const ManifestTensor& tensor : checkpoint_.manifest.tensors) {
      if (tensor.part != kModelPart) continue;
      tensors.push_back({.source = &tensor,
                         .name = "x" + tensor.name,
                         .dtype = tensor.dtype == at::kLong ? at::kLong : dtype});
    }
    return tensors;
  }

  Contents write(at::ScalarType dtype, const PlanLimits& limits = {}) {
    const ModelCopy copy(checkpoint_.path, checkpoint_.manifest, all(dtype), limits);
    ByteProgress progress;
    Contents written = copy.write(to_, &progress);
    EXPECT_GE(progress.done, a_.numel() * c10::elementSize(dtype));
    EXPECT_EQ(progress.done, progress.all);
    return written;
  }

  TemporaryFolder folder_;
  std::filesystem::path to_ = folder_ / "to";
  at::Tensor a_ = tensors::arange(70'000, at::kFloat).reshape({700, 100}).mul(0.1);
  at::Tensor b_ = tensors::arange(5, at::kLong);
  at::Tensor none_ = tensors::zeros({0, 3});
  Checkpoint checkpoint_;
};

TEST_F(ModelCopies, AreOneFileUnderOtherNames) {
  const Contents written = write(at::kFloat);
  EXPECT_EQ(written.files.size(), 1U);
  EXPECT_EQ(written.tensors.size(), 3U);
  const auto tensors = read_safetensors(to_ / "model.safetensors");
  EXPECT_EQ(tensors.size(), 3U);
  EXPECT_TRUE(tensors.at("xa").equal(a_));
  EXPECT_TRUE(tensors.at("xb").equal(b_));
  EXPECT_EQ(tensors.at("xnone").sizes(), none_.sizes());
}

TEST_F(ModelCopies, AreConvertedPieceByPiece) {
  write(at::kBFloat16, {.piece_bytes = uint64_t{1} << 16});
  const auto tensors = read_safetensors(to_ / "model.safetensors");
  EXPECT_TRUE(tensors.at("xa").equal(a_.to(at::kBFloat16)));
  EXPECT_EQ(tensors.at("xb").scalar_type(), at::kLong);
}

TEST_F(ModelCopies, BecomeACheckpointWithAManifest) {
  for (const uint64_t limit : {uint64_t{1} << 30, uint64_t{1'000}}) {
    const auto folder = to_ / std::to_string(limit);
    std::filesystem::create_directory(folder);
    const ModelCopy copy(checkpoint_.path, checkpoint_.manifest, all(at::kFloat),
                         {.file_bytes = limit});
    const Manifest manifest{copy.write(folder)};
    write_text(folder / kManifestFile, format_manifest(manifest));
    EXPECT_EQ(verify_checkpoint(folder).manifest.tensors.size(), 3U);
    // Others open it by its index, where there are several files.
    EXPECT_EQ(manifest.files.contains("model.safetensors.index.json"), limit == 1'000);
    EXPECT_EQ(open_safetensors_model(folder).manifest.tensors.size(), 3U);
  }
}

TEST_F(ModelCopies, ReadNothingThatIsDamaged) {
  const auto path = checkpoint_.path / "model.safetensors";
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-3, std::ios::end);
  file.put('\x7f');
  file.close();
  EXPECT_THAT([&] { write(at::kFloat); }, ThrowsMessage<CheckpointError>(HasSubstr("is damaged")));
}

TEST_F(ModelCopies, MakeNoInfinities) {
  a_[3][4] = 1e6;
  a_[0][0] = std::numeric_limits<double>::infinity();  // was one, and stays one
  Snapshot snapshot;
  snapshot.model = {whole_tensor("a", a_)};
  checkpoint_ = open_checkpoint(save_checkpoint(folder_ / "large", snapshot).path);
  EXPECT_THAT([&] { write(at::kHalf); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("'a'"), HasSubstr("beyond the range"))));
  std::filesystem::remove(to_ / "model.safetensors");
  write(at::kBFloat16);
}

}  // namespace
}  // namespace phalanx
