// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/replicas/scattered_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/parallel/replicas/scattered_batch.h"

namespace phalanx {
namespace {

using testing::ElementsAre;

struct Numbers : Batch {
  std::vector<at::Tensor*> tensors() override { return {&values}; }
  at::Tensor values;
};

std::unique_ptr<Batch> batch_of(std::vector<int64_t> samples) {
  auto batch = std::make_unique<Numbers>();
  batch->values = torch::tensor(samples);
  batch->samples = static_cast<int64_t>(samples.size());
  for (const int64_t sample : samples) batch->tokens += sample;
  batch->sample_numbers = std::move(samples);
  return batch;
}

/// Seven samples in micro-batches of five, whose tokens are their numbers.
class Seven : public BatchSource {
 public:
  explicit Seven(bool reads_again = true) : reads_again_(reads_again) {}
  int64_t samples_per_epoch() const override { return 7; }
  int64_t batches_per_epoch() const override { return 2; }
  std::string fingerprint() const override { return "seven"; }
  void start_epoch(int64_t /*epoch*/, int64_t consumed) override { next_ = consumed; }
  std::unique_ptr<Batch> next() override {
    if (next_ == 7) return nullptr;
    std::vector<int64_t> samples;
    while (next_ < 7 && samples.size() < 5) samples.push_back(next_++);
    auto batch = batch_of(samples);
    if (next_ == 7) batch->broken.push_back({});
    return batch;
  }
  std::unique_ptr<Batch> read_again(std::span<const int64_t> samples) const override {
    if (!reads_again_) return nullptr;
    return batch_of({samples.begin(), samples.end()});
  }

 private:
  bool reads_again_;
  int64_t next_ = 0;
};

std::vector<std::vector<int64_t>> parts_of(const Batch& batch) {
  std::vector<std::vector<int64_t>> all;
  for (const auto& part : dynamic_cast<const ScatteredBatch&>(batch).parts()) {
    all.push_back(part->sample_numbers);
  }
  return all;
}

TEST(ChunkSizes, AreThoseOfTorchChunk) {
  for (int64_t samples = 1; samples < 12; ++samples) {
    for (int64_t chunks = 1; chunks < 6; ++chunks) {
      std::vector<int64_t> expected;
      for (const auto& chunk : torch::arange(samples).chunk(chunks)) {
        expected.push_back(chunk.numel());
      }
      EXPECT_EQ(chunk_sizes(samples, chunks), expected) << samples << " in " << chunks;
    }
  }
  EXPECT_TRUE(chunk_sizes(0, 3).empty());
}

TEST(ScatteredSource, CutsEachMicroBatchAlongItsSamples) {
  ScatteredSource source(std::make_unique<Seven>(), 3, std::nullopt);
  source.start_epoch(0, 0);
  const auto first = source.next();
  EXPECT_THAT(parts_of(*first), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4)));
  EXPECT_EQ(first->samples, 5);
  EXPECT_EQ(first->tokens, 10);
  EXPECT_THAT(first->sample_numbers, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(first->tensors().size(), 3);
  const auto last = source.next();
  EXPECT_THAT(parts_of(*last), ElementsAre(ElementsAre(5), ElementsAre(6)));
  EXPECT_EQ(last->broken.size(), 1);
  EXPECT_EQ(last->counted_samples(), 3);
  EXPECT_EQ(source.next(), nullptr);
}

TEST(ScatteredSource, BeginsAnewWhateverWasReadAhead) {
  ScatteredSource source(std::make_unique<Seven>(), 2, std::nullopt);
  source.start_epoch(0, 0);
  source.next();
  source.start_epoch(1, 3);
  EXPECT_THAT(parts_of(*source.next()), ElementsAre(ElementsAre(3, 4), ElementsAre(5, 6)));
  EXPECT_EQ(source.next(), nullptr);
}

TEST(ScatteredSource, RefusesDataThatCannotBeReadByNumbers) {
  EXPECT_THROW(ScatteredSource(std::make_unique<Seven>(/*reads_again=*/false), 2, std::nullopt),
               UserError);
}

}  // namespace
}  // namespace phalanx
