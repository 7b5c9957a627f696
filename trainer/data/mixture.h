// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/dataset.h"

namespace phalanx {

/// A part of a data set that is a source of a mixture.
struct MixturePart {
  int64_t samples = 0;  ///< Those that it has; at least 1.
  /// Those in an epoch of the mixture; at least 1, perhaps more than all.
  int64_t per_epoch = 0;
};

/// Samples of several sources in fixed proportions. An epoch has exactly `per_epoch` samples of
/// each part. A part goes on in the next epoch where the last one left it: it shows each sample
/// once before it shows one again, in another order then.
class Mixture : public Dataset {
 public:
  /// The parts follow each other in `whole`, and make it up.
  Mixture(std::shared_ptr<const Dataset> whole, std::vector<MixturePart> parts);

  int64_t size() const override;
  /// Samples of the first epoch, in the parts' own order.
  std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const override;
  std::string fingerprint() const override;
  std::shared_ptr<const Dataset> of_epoch(int64_t epoch,
                                          std::optional<uint64_t> seed) const override;

 private:
  class Epoch;

  const std::shared_ptr<const Dataset> whole_;
  const std::vector<MixturePart> parts_;
};

/// So many of `total` samples for each part as its share says, which need not sum to 1: rounded so
/// that they sum to `total` (the largest remainders count up). `shares` are positive.
std::vector<int64_t> samples_by_share(const std::vector<double>& shares, int64_t total);

}  // namespace phalanx
