// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/byte_blocks.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>
#include <vector>

#include "trainer/data/token_batch.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

constexpr int64_t kBlock = 4096;
constexpr int64_t kBlocks = 256;

struct FreeState {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

// The places of the blocks that are hashed: all, or kBlocks evenly spread ones.
std::vector<int64_t> sampled_blocks(int64_t begin, int64_t end) {
  std::vector<int64_t> places;
  const int64_t bytes = end - begin;
  if (bytes <= kBlock * kBlocks) {
    for (int64_t place = begin; place < end; place += kBlock) places.push_back(place);
    return places;
  }
  const int64_t last = bytes - kBlock;  // Of the last block that fits.
  // last / (kBlocks - 1) * i without the product's overflow, which comes at 36 PB otherwise.
  const int64_t stride = last / (kBlocks - 1);
  const int64_t rest = last % (kBlocks - 1);
  for (int64_t i = 0; i < kBlocks; ++i) {
    places.push_back(begin + stride * i + rest * i / (kBlocks - 1));
  }
  return places;
}

}  // namespace

ByteBlocks::ByteBlocks(std::shared_ptr<const ByteStream> stream, int64_t begin, int64_t end,
                       int64_t length)
    : stream_(std::move(stream)), begin_(begin), end_(end), length_(length) {
  if (length_ < 1 || begin_ < 0 || end_ > stream_->size() ||
      end_ - begin_ < bytes_needed(length_)) {
    throw std::invalid_argument(
        fmt::format("bytes [{}, {}) of {} do not hold a sample of {} tokens", begin_, end_,
                    stream_->size(), length_));
  }
}

int64_t ByteBlocks::size() const { return (end_ - begin_ - 1) / length_; }

std::unique_ptr<Batch> ByteBlocks::batch(std::span<const int64_t> indices) const {
  auto batch = std::make_unique<TokenBatch>();
  const auto samples = static_cast<int64_t>(indices.size());
  batch->samples = samples;
  batch->tokens = samples * length_;
  batch->inputs = tensors::empty({samples, length_}, at::kLong);
  batch->targets = tensors::empty({samples, length_}, at::kLong);
  auto* inputs = batch->inputs.mutable_data_ptr<int64_t>();
  auto* targets = batch->targets.mutable_data_ptr<int64_t>();
  std::vector<int64_t> tokens(static_cast<size_t>(length_ + 1));
  for (const int64_t index : indices) {
    stream_->read(begin_ + index * length_, std::span<int64_t>(tokens));
    inputs = std::copy(tokens.begin(), tokens.end() - 1, inputs);
    targets = std::copy(tokens.begin() + 1, tokens.end(), targets);
  }
  return batch;
}

std::string ByteBlocks::fingerprint() const {
  const std::unique_ptr<XXH3_state_t, FreeState> state(XXH3_createState());
  XXH3_64bits_reset(state.get());
  const std::array<int64_t, 2> shape{length_, end_ - begin_};
  XXH3_64bits_update(state.get(), shape.data(), sizeof(shape));
  std::vector<unsigned char> block(kBlock);
  for (const int64_t place : sampled_blocks(begin_, end_)) {
    const std::span<unsigned char> part(block.data(),
                                        static_cast<size_t>(std::min(kBlock, end_ - place)));
    stream_->read(place, part);
    XXH3_64bits_update(state.get(), part.data(), part.size());
  }
  return fmt::format("bytes-{:016x}", XXH3_64bits_digest(state.get()));
}

}  // namespace phalanx
