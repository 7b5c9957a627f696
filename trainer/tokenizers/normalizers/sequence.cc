// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "trainer/tokenizers/normalizers/kinds.h"
#include "trainer/tokenizers/normalizers/read_normalizer.h"

namespace phalanx::normalizers {
namespace {

using nlohmann::json;

class Sequence final : public Normalizer {
 public:
  explicit Sequence(std::vector<Made> steps) : steps_(std::move(steps)) {}

  void apply(NormalizedText& text) const override {
    for (const Made& step : steps_) step->apply(text);
  }

  bool keeps_cuts() const override {
    return std::all_of(steps_.begin(), steps_.end(),
                       [](const Made& step) { return step->keeps_cuts(); });
  }

 private:
  std::vector<Made> steps_;
};

}  // namespace

Made read_sequence(const json& object) {
  std::vector<Made> steps;
  for (const json& step : object.at("normalizers")) {
    if (!step.is_null()) steps.push_back(read_normalizer(step));
  }
  return std::make_shared<Sequence>(std::move(steps));
}

}  // namespace phalanx::normalizers
