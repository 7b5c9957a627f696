// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/load/slice_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/tensors.h"
#include "tests/trainer/checkpoint/example_run.h"
#include "tests/trainer/io/temporary_folder.h"
#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/checksum.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kChunkElements = Manifest::kMinChunkBytes / sizeof(float);

/// A tensor of some chunks, saved in pieces of two.
class SliceReaderTest : public testing::Test {
 protected:
  SliceReaderTest() {
    Snapshot snapshot;
    snapshot.model = {whole_tensor("w", values_), whole_tensor("flags", flags_)};
    snapshot.rng_states = {{"cpu", tensors::zeros({8}, at::kByte)}};
    const auto saved = save_checkpoint(folder_.path(), snapshot,
                                       {.limits = {.piece_bytes = 2 * Manifest::kMinChunkBytes}});
    checkpoint_ = open_checkpoint(saved.path);
  }

  const ManifestTensor& tensor(const std::string& name) const {
    for (const auto& tensor : checkpoint_.manifest.tensors) {
      if (tensor.name == name) return tensor;
    }
    throw std::logic_error("no " + name);
  }

  TemporaryFolder folder_;
  at::Tensor values_ = tensors::arange(7 * kChunkElements + 5, at::kFloat);
  at::Tensor flags_ = tensors::arange(3).remainder(2).eq(0);
  Checkpoint checkpoint_;
};

TEST_F(SliceReaderTest, AnyRangeIsReadWithHardlyMoreThanItself) {
  ASSERT_GT(tensor("w").slices.size(), 3U);
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    const int64_t begin = static_cast<int64_t>(random()) % values_.numel();
    const int64_t size = static_cast<int64_t>(random()) % (values_.numel() - begin + 1);
    const at::Tensor read = tensors::full({size}, -1, at::kFloat);
    SliceReader reader(checkpoint_.path, checkpoint_.manifest);
    reader.read(tensor("w"), begin, read);
    ASSERT_TRUE(read.equal(values_.narrow(0, begin, size))) << begin << " " << size;
    EXPECT_LE(reader.bytes_read(), read.nbytes() + 2 * Manifest::kMinChunkBytes);
  }
}

TEST_F(SliceReaderTest, OtherStridesAreFilledInLogicalOrder) {
  const at::Tensor turned = tensors::empty({2, 3}).t();
  SliceReader(checkpoint_.path, checkpoint_.manifest).read(tensor("w"), 5, turned);
  EXPECT_TRUE(turned.equal(tensors::arange(5, 11, at::kFloat).view({3, 2})));
}

TEST_F(SliceReaderTest, AFlippedByteIsNamedByThoseThatReadItsChunkAndByNoOther) {
  const ManifestSlice& slice = tensor("w").slices[1];
  const uint64_t place = slice.offset + Manifest::kMinChunkBytes + 17;
  std::string bytes = slurp(checkpoint_.path / slice.file);
  bytes[place] = static_cast<char>(bytes[place] ^ 4);
  spill(checkpoint_.path / slice.file, bytes);
  SliceReader reader(checkpoint_.path, checkpoint_.manifest);
  const int64_t damaged = slice.begin + kChunkElements;
  reader.read(tensor("w"), 0, tensors::empty({damaged}));
  reader.read(tensor("w"), damaged + kChunkElements,
              tensors::empty({values_.numel() - damaged - kChunkElements}));
  try {
    reader.read(tensor("w"), damaged + 100, tensors::empty({1}));
    FAIL() << "the damage was not seen";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr(slice.file), HasSubstr("model tensor 'w'"),
                      HasSubstr(std::to_string(slice.offset + Manifest::kMinChunkBytes))));
  }
}

TEST_F(SliceReaderTest, OtherDestinationsAreTheCallersMistake) {
  SliceReader reader(checkpoint_.path, checkpoint_.manifest);
  EXPECT_THROW(reader.read(tensor("w"), 0, tensors::empty({2}, at::kDouble)), std::logic_error);
  EXPECT_THROW(reader.read(tensor("w"), {.box = {}, .begin = 0, .end = 3}, tensors::empty({2})),
               std::logic_error);
  EXPECT_THROW(reader.read(tensor("w"), values_.numel() - 1, tensors::empty({2})),
               std::logic_error);
}

TEST_F(SliceReaderTest, ABoolIsOneOrNought) {
  Manifest manifest = checkpoint_.manifest;
  std::string bytes = slurp(checkpoint_.path / "model.safetensors");
  for (ManifestTensor& each : manifest.tensors) {
    if (each.name != "flags") continue;
    ManifestSlice& slice = each.slices.front();
    bytes[slice.offset] = 7;
    slice.checksums = {checksum_of(std::string_view(bytes).substr(slice.offset, 3))};
    spill(checkpoint_.path / "model.safetensors", bytes);
    const at::Tensor read = tensors::empty({3}, at::kBool);
    SliceReader(checkpoint_.path, manifest).read(each, 0, read);
    EXPECT_EQ(*static_cast<const unsigned char*>(read.const_data_ptr()), 1);
  }
}

}  // namespace
}  // namespace phalanx
