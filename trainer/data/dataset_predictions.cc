// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/dataset_predictions.h"

#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "trainer/api/broken_sample.h"
#include "trainer/data/read_batch.h"

namespace phalanx {
namespace {

class DatasetPredictions : public PredictionSource {
 public:
  explicit DatasetPredictions(std::shared_ptr<const Dataset> dataset)
      : dataset_(std::move(dataset)) {}

  int64_t samples() const override { return dataset_->size(); }
  std::string fingerprint() const override { return dataset_->fingerprint(); }
  std::string describe(int64_t sample, const std::string& problem) const override {
    return dataset_->describe(sample, problem);
  }
  std::unique_ptr<Batch> read_again(std::span<const int64_t> samples) const override {
    return read_batch(*dataset_, samples);
  }

  PredictionBatch batch(int64_t begin, int64_t end) const override {
    std::vector<int64_t> indices(static_cast<size_t>(end - begin));
    std::iota(indices.begin(), indices.end(), begin);
    PredictionBatch made{.batch = nullptr, .problems = {}};
    made.problems.resize(indices.size());
    try {
      made.batch = read_batch(*dataset_, indices);
    } catch (const BrokenSampleError&) {
      leave_out_broken(indices, made);
    }
    return made;
  }

 private:
  // Tries each sample by itself.
  void leave_out_broken(const std::vector<int64_t>& indices, PredictionBatch& made) const {
    std::vector<int64_t> whole;
    for (size_t i = 0; i < indices.size(); ++i) {
      try {
        dataset_->batch(std::span(&indices[i], 1));
        whole.push_back(indices[i]);
      } catch (const BrokenSampleError& error) {
        made.problems[i] = error.sample().message;
      }
    }
    if (!whole.empty()) made.batch = read_batch(*dataset_, whole);
  }

  const std::shared_ptr<const Dataset> dataset_;
};

}  // namespace

std::unique_ptr<PredictionSource> predictions_of(std::shared_ptr<const Dataset> dataset) {
  return std::make_unique<DatasetPredictions>(std::move(dataset));
}

}  // namespace phalanx
