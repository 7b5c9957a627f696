// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "trainer/api/batch.h"

namespace phalanx {

/// Samples by number. The loader decides which ones make a micro-batch, and calls from several
/// threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// Number of samples.
  virtual int64_t size() const = 0;

  /// The samples at `indices`, each in [0, size()), as one micro-batch. Thread-safe. It
  /// draws no numbers from LibTorch's generators (BatchSource::next).
  virtual std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const = 0;

  /// The samples of an epoch, as many as `size()`, where epochs differ; nullptr: this one has the
  /// same in each. `seed` is that of the training's orders; nothing: it does not shuffle.
  virtual std::shared_ptr<const Dataset> of_epoch(int64_t /*epoch*/,
                                                  std::optional<uint64_t> /*seed*/) const {
    return nullptr;
  }

  /// How long a sample is, in its own unit, where samples differ and a batch is as wide as its
  /// longest; nothing: they do not. Thread-safe.
  virtual std::optional<int64_t> length(int64_t /*index*/) const { return std::nullopt; }

  /// Refuses a sample: throws BrokenSampleError, whose message goes on with `problem` behind the
  /// sample's place; `kind` has no numbers (BrokenSample).
  virtual void fail(int64_t index, const std::string& kind, const std::string& problem) const;

  /// What is wrong with a sample, behind its place, as `fail` says it.
  std::string describe(int64_t index, const std::string& problem) const;

  /// Names the content: equal for equal samples, wherever they lie. See BatchSource::fingerprint.
  virtual std::string fingerprint() const = 0;
};

}  // namespace phalanx
