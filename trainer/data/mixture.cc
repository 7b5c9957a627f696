// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/mixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "trainer/base/xxh3.h"
#include "trainer/data/computed_permutation.h"
#include "trainer/data/end_to_end.h"

namespace phalanx {

// The samples of one epoch: those of each part side by side.
class Mixture::Epoch : public Dataset {
 public:
  Epoch(std::shared_ptr<const Dataset> whole, const std::vector<MixturePart>& parts, int64_t epoch,
        std::optional<uint64_t> seed)
      : whole_(std::move(whole)), parts_(parts), epoch_(epoch), seed_(seed) {
    for (const MixturePart& part : parts_) {
      in_epoch_.add(part.per_epoch);
      in_whole_.add(part.samples);
    }
  }

  int64_t size() const override { return in_epoch_.size(); }

  std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const override {
    std::vector<int64_t> in_whole;
    in_whole.reserve(indices.size());
    for (const int64_t index : indices) in_whole.push_back(place_in_whole(index));
    return whole_->batch(in_whole);
  }

  std::optional<int64_t> length(int64_t index) const override {
    return whole_->length(place_in_whole(index));
  }

  std::string fingerprint() const override { return whole_->fingerprint(); }
  void fail(int64_t index, const std::string& kind, const std::string& problem) const override {
    whole_->fail(place_in_whole(index), kind, problem);
  }

 private:
  int64_t place_in_whole(int64_t index) const {
    const size_t number = in_epoch_.part_at(index);
    const MixturePart& part = parts_.at(number);
    // Counted from the first epoch on.
    const int64_t of_part = (epoch_ + 1) * part.per_epoch - (in_epoch_.end(number) - index);
    const int64_t pass = of_part / part.samples;
    const int64_t place = of_part % part.samples;
    return in_whole_.begin(number) + (seed_ ? shuffled(number, pass, place) : place);
  }

  int64_t shuffled(size_t number, int64_t pass, int64_t place) const {
    const ComputedPermutation order(parts_[number].samples, seed_of(number),
                                    static_cast<uint64_t>(pass));
    return order.at(place);
  }

  // Another one for each part, and another than that of the mixture's own order.
  uint64_t seed_of(size_t number) const { return *seed_ ^ 0x9E3779B97F4A7C15 * (number + 1); }

  const std::shared_ptr<const Dataset> whole_;
  const std::vector<MixturePart> parts_;
  const int64_t epoch_;
  const std::optional<uint64_t> seed_;
  EndToEnd in_epoch_;  // The parts' samples,
  EndToEnd in_whole_;  // and all samples that they have.
};

Mixture::Mixture(std::shared_ptr<const Dataset> whole, std::vector<MixturePart> parts)
    : whole_(std::move(whole)), parts_(std::move(parts)) {
  int64_t samples = 0;
  for (const MixturePart& part : parts_) {
    if (part.samples < 1 || part.per_epoch < 1) {
      throw std::invalid_argument("a part of a mixture without samples");
    }
    samples += part.samples;
  }
  if (parts_.empty() || samples != whole_->size()) {
    throw std::invalid_argument(
        fmt::format("a mixture of {} samples of {}", samples, whole_->size()));
  }
}

int64_t Mixture::size() const {
  return std::accumulate(parts_.begin(), parts_.end(), int64_t{0},
                         [](int64_t sum, const auto& part) { return sum + part.per_epoch; });
}

std::unique_ptr<Batch> Mixture::batch(std::span<const int64_t> indices) const {
  return of_epoch(0, {})->batch(indices);
}

std::string Mixture::fingerprint() const {
  std::string text = whole_->fingerprint();
  for (const auto& [samples, per_epoch] : parts_) text += fmt::format(" {}/{}", per_epoch, samples);
  return "mixture-" + xxh3_digits64(text);
}

std::shared_ptr<const Dataset> Mixture::of_epoch(int64_t epoch,
                                                 std::optional<uint64_t> seed) const {
  return std::make_shared<Epoch>(whole_, parts_, epoch, seed);
}

std::vector<int64_t> samples_by_share(const std::vector<double>& shares, int64_t total) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<int64_t> samples;
  std::vector<std::pair<double, size_t>> remainders;
  int64_t left = total;
  for (const double share : shares) {
    const double exact = share / sum * static_cast<double>(total);
    samples.push_back(static_cast<int64_t>(std::floor(exact)));
    remainders.emplace_back(exact - std::floor(exact), remainders.size());
    left -= samples.back();
  }
  std::stable_sort(remainders.begin(), remainders.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (size_t i = 0; left > 0; ++i, --left) ++samples[remainders[i % remainders.size()].second];
  return samples;
}

}  // namespace phalanx
