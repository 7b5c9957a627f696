// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/byte_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "tests/trainer/data/text_folder.h"
#include "trainer/data/token_batch.h"

namespace phalanx {
namespace {

std::shared_ptr<const ByteStream> stream_of(const TextFolder& folder,
                                            const std::vector<std::string>& texts) {
  std::vector<std::filesystem::path> files;
  for (const auto& text : texts) {
    files.push_back(folder.write("f" + std::to_string(files.size()), text));
  }
  return std::make_shared<ByteStream>("data.path", files);
}

std::string fingerprint_of(const std::vector<std::string>& texts, int64_t length = 2) {
  const TextFolder folder;
  const auto stream = stream_of(folder, texts);
  return ByteBlocks(stream, 0, stream->size(), length).fingerprint();
}

std::string text_of(const at::Tensor& tokens) {
  std::string text;
  for (int64_t i = 0; i < tokens.numel(); ++i) {
    text += static_cast<char>(tokens.const_data_ptr<int64_t>()[i]);
  }
  return text;
}

TEST(ByteBlocks, CutsARangeIntoSequencesWithTheirNextBytes) {
  const TextFolder folder;
  const ByteBlocks blocks(stream_of(folder, {"abcde", "fghij"}), 1, 9, 3);
  EXPECT_EQ(blocks.size(), 2);
  const std::vector<int64_t> indices{1, 0};
  const auto batch = blocks.batch(indices);
  const auto& tokens = static_cast<const TokenBatch&>(*batch);
  EXPECT_EQ(tokens.samples, 2);
  EXPECT_EQ(tokens.tokens, 6);
  EXPECT_EQ(tokens.inputs.sizes(), at::IntArrayRef({2, 3}));
  EXPECT_EQ(tokens.inputs.scalar_type(), at::kLong);
  EXPECT_EQ(text_of(tokens.inputs), "efgbcd");
  EXPECT_EQ(text_of(tokens.targets), "fghcde");
}

TEST(ByteBlocks, TheLastByteIsATargetOnly) {
  const TextFolder folder;
  const auto stream = stream_of(folder, {"abcdefg"});
  EXPECT_EQ(ByteBlocks(stream, 0, 7, 3).size(), 2);
  EXPECT_EQ(ByteBlocks(stream, 0, 6, 3).size(), 1);
  EXPECT_EQ(ByteBlocks(stream, 0, ByteBlocks::bytes_needed(6), 6).size(), 1);
  EXPECT_THROW(ByteBlocks(stream, 0, 6, 6), std::invalid_argument);
  EXPECT_THROW(ByteBlocks(stream, 0, 8, 3), std::invalid_argument);
}

TEST(ByteBlocks, FingerprintNamesContentNotFiles) {
  EXPECT_EQ(fingerprint_of({"abcdef"}), fingerprint_of({"ab", "cdef"}));
  EXPECT_NE(fingerprint_of({"abcdef"}), fingerprint_of({"abcdeg"}));
  EXPECT_NE(fingerprint_of({"abcdef"}), fingerprint_of({"abcdefg"}));
  EXPECT_NE(fingerprint_of({"abcdef"}, 2), fingerprint_of({"abcdef"}, 3));
}

TEST(ByteBlocks, FingerprintOfBigDataSeesItsEndsAndItsLength) {
  const std::string big(3 << 20, 'x');
  auto head = big;
  head.front() = 'y';
  auto tail = big;
  tail.back() = 'y';
  EXPECT_NE(fingerprint_of({big}), fingerprint_of({head}));
  EXPECT_NE(fingerprint_of({big}), fingerprint_of({tail}));
  EXPECT_NE(fingerprint_of({big}), fingerprint_of({big + "x"}));
}

}  // namespace
}  // namespace phalanx
