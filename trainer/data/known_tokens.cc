// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/known_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "trainer/data/sequence_pair_batch.h"
#include "trainer/data/token_batch.h"

namespace phalanx {
namespace {

// The place of the first number that is no token of the vocabulary and not `allowed`.
std::optional<int64_t> first_unknown(std::span<const int64_t> ids, int64_t vocabulary_size,
                                     std::optional<int64_t> allowed) {
  // As unsigned numbers, negative ones are too large.
  const auto limit = static_cast<uint64_t>(vocabulary_size);
  const auto found = std::find_if(ids.begin(), ids.end(), [&](int64_t id) {
    return static_cast<uint64_t>(id) >= limit && id != allowed;
  });
  if (found == ids.end()) return std::nullopt;
  return found - ids.begin();
}

class KnownTokens : public Dataset {
 public:
  KnownTokens(std::shared_ptr<const Dataset> dataset, int64_t vocabulary_size)
      : dataset_(std::move(dataset)), vocabulary_size_(vocabulary_size) {}

  int64_t size() const override { return dataset_->size(); }
  std::optional<int64_t> length(int64_t index) const override { return dataset_->length(index); }
  std::string fingerprint() const override { return dataset_->fingerprint(); }

  void fail(int64_t index, const std::string& kind, const std::string& problem) const override {
    dataset_->fail(index, kind, problem);
  }

  std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const override {
    auto batch = dataset_->batch(indices);
    if (const auto* tokens = dynamic_cast<const TokenBatch*>(batch.get())) {
      check(indices, *tokens);
    } else if (const auto* pairs = dynamic_cast<const SequencePairBatch*>(batch.get())) {
      check(indices, *pairs);
    }
    return batch;
  }

  std::shared_ptr<const Dataset> of_epoch(int64_t epoch,
                                          std::optional<uint64_t> seed) const override {
    auto samples = dataset_->of_epoch(epoch, seed);
    return samples ? known_tokens(std::move(samples), vocabulary_size_) : nullptr;
  }

 private:
  template <class BatchOfTokens>
  void check(std::span<const int64_t> indices, const BatchOfTokens& batch) const {
    check(indices, "input", batch.inputs, std::nullopt);
    check(indices, "target", batch.targets, kNoTarget);
  }

  void check(std::span<const int64_t> indices, const char* what, const at::Tensor& rows,
             std::optional<int64_t> allowed) const {
    const at::Tensor ids = rows.contiguous();
    const std::span all(ids.const_data_ptr<int64_t>(), static_cast<size_t>(ids.numel()));
    const auto unknown = first_unknown(all, vocabulary_size_, allowed);
    if (!unknown) return;
    const int64_t width = ids.size(-1);
    dataset_->fail(
        indices[static_cast<size_t>(*unknown / width)], "a token beyond the vocabulary",
        fmt::format("token {} of the {} is {}, but the model knows only tokens below {}",
                    *unknown % width, what, all[static_cast<size_t>(*unknown)], vocabulary_size_));
  }

  const std::shared_ptr<const Dataset> dataset_;
  const int64_t vocabulary_size_;
};

}  // namespace

std::shared_ptr<const Dataset> known_tokens(std::shared_ptr<const Dataset> dataset,
                                            int64_t vocabulary_size) {
  return std::make_shared<KnownTokens>(std::move(dataset), vocabulary_size);
}

}  // namespace phalanx
