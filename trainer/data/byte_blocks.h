// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "trainer/data/byte_stream.h"
#include "trainer/data/dataset.h"

namespace phalanx {

/// A range of a byte stream cut into sequences of `length` tokens, one byte a token, side by side:
/// sample i is bytes [begin + i * length, begin + (i + 1) * length), its targets are one byte
/// later. Makes TokenBatch.
class ByteBlocks : public Dataset {
 public:
  /// What one sample needs: its tokens and the one after the last.
  static int64_t bytes_needed(int64_t length) { return length + 1; }

  /// The range [begin, end) must lie inside the stream and hold at least one sample.
  ByteBlocks(std::shared_ptr<const ByteStream> stream, int64_t begin, int64_t end, int64_t length);

  int64_t size() const override;
  std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const override;

  /// A hash (XXH3, 64 bits) of the length of a sample, the number of bytes and the bytes
  /// themselves: all of them up to 1 MiB, else 256 evenly spread blocks of 4 KiB, the first and the
  /// last included. So it is cheap for any size, does not depend on where the files lie or how they
  /// are cut, and may miss a change inside big data that keeps its length.
  std::string fingerprint() const override;

 private:
  const std::shared_ptr<const ByteStream> stream_;
  const int64_t begin_;
  const int64_t end_;
  const int64_t length_;
};

}  // namespace phalanx
