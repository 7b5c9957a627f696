// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/api/batch.h"
#include "trainer/api/known_samples.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

/// What a task is asked for predictions of.
struct PredictionInput {
  std::vector<std::filesystem::path> files;
  /// Those that make predictions: a task that calls the model until all are done asks them, where
  /// the model lies on several.
  Ranks ranks;
};

/// A batch of Phase::predict.
struct PredictionBatch {
  std::unique_ptr<Batch> batch;  ///< Holds the samples that can be read; null without any.
  /// Why each sample cannot be read, in order; nothing for one that can.
  std::vector<std::optional<std::string>> problems;
};

/// The samples that predictions are made of. Thread-safe.
class PredictionSource : public KnownSamples {
 public:
  virtual int64_t samples() const = 0;

  /// Names the samples, as BatchSource::fingerprint.
  virtual std::string fingerprint() const = 0;

  /// Samples [begin, end), at least one.
  virtual PredictionBatch batch(int64_t begin, int64_t end) const = 0;
};

}  // namespace phalanx
