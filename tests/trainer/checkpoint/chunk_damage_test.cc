// SPDX-License-Identifier: Apache-2.0
// Damage at the borders of chunks, in tensors of several slices of several chunks each.

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/trainer/checkpoint/saved_by_ranks.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kChunk = Manifest::kMinChunkBytes;

class ChunkDamage : public SavedByRanks {
 protected:
  static void SetUpTestSuite() { save(/*elements=*/100'003, {.file_bytes = 500'000}); }
};

void flip(const std::filesystem::path& path, uint64_t place) {
  File file(path, O_RDWR);
  std::byte value{};
  file.read({&value, 1}, place);
  value ^= std::byte{0x20};
  file.write_at({&value, 1}, place);
}

/// The first byte of each chunk of a slice, one within, and its last.
std::set<uint64_t> places_in(const ManifestTensor& tensor, const ManifestSlice& slice) {
  const uint64_t bytes =
      static_cast<uint64_t>(slice.end - slice.begin) * c10::elementSize(tensor.dtype);
  std::set<uint64_t> places;
  for (uint64_t begin = 0; begin < bytes; begin += kChunk) {
    const uint64_t end = std::min(begin + kChunk, bytes);
    places.insert({slice.offset + begin, slice.offset + (begin + end) / 2, slice.offset + end - 1});
  }
  return places;
}

TEST_F(ChunkDamage, IsFoundAtEveryBorderAndNamedByItsChunk) {
  const Manifest manifest = load_manifest(newest());
  std::size_t chunks_within = 0;
  for (const ManifestTensor& tensor : manifest.tensors) {
    if (tensor.part == kRngPart) continue;
    for (const ManifestSlice& slice : tensor.slices) {
      chunks_within = std::max(chunks_within, slice.checksums.size());
      for (const uint64_t place : places_in(tensor, slice)) {
        SCOPED_TRACE(fmt::format("{} byte {}", slice.file, place));
        flip(newest() / slice.file, place);
        const uint64_t chunk = slice.offset + (place - slice.offset) / kChunk * kChunk;
        const auto names_it = AllOf(HasSubstr(slice.file), HasSubstr('\'' + tensor.name + '\''),
                                    HasSubstr(fmt::format("bytes {} to ", chunk)));
        EXPECT_THAT(verdict(), names_it);
        const Found found = load();
        EXPECT_EQ(found.step, 1);
        EXPECT_TRUE(found.is_right);
        EXPECT_THAT(found.warnings, ElementsAre(names_it));
        flip(newest() / slice.file, place);
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_EQ(chunks_within, 2U);
  EXPECT_EQ(verdict(), "");
}

}  // namespace
}  // namespace phalanx
