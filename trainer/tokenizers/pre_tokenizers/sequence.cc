// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "trainer/tokenizers/pre_tokenizers/kinds.h"
#include "trainer/tokenizers/pre_tokenizers/read_pre_tokenizer.h"

namespace phalanx::pre_tokenizers {
namespace {

using nlohmann::json;

class Sequence final : public PreTokenizer {
 public:
  explicit Sequence(std::vector<Made> steps) : steps_(std::move(steps)) {}

  void cut(const TextPiece& piece, Take take) const override { cut_from(0, piece, take); }

  // The steps before the one that cuts give it pieces of the text as it is; those behind it see
  // its pieces alone.
  bool cuts_behind_letters() const override {
    const auto cutting = std::find_if_not(steps_.begin(), steps_.end(), [](const Made& step) {
      return step->looks_beside_cuts_alone();
    });
    return cutting != steps_.end() && (*cutting)->cuts_behind_letters() && !asks_for_start();
  }

  bool looks_beside_cuts_alone() const override {
    return std::all_of(steps_.begin(), steps_.end(),
                       [](const Made& step) { return step->looks_beside_cuts_alone(); });
  }

  bool asks_for_start() const override {
    return std::any_of(steps_.begin(), steps_.end(),
                       [](const Made& step) { return step->asks_for_start(); });
  }

 private:
  void cut_from(size_t step, const TextPiece& piece, Take take) const {
    if (step == steps_.size()) {
      take(piece);
      return;
    }
    steps_[step]->cut(piece, [&](const TextPiece& part) { cut_from(step + 1, part, take); });
  }

  std::vector<Made> steps_;
};

}  // namespace

Made read_sequence(const json& object) {
  std::vector<Made> steps;
  for (const json& step : object.at("pretokenizers")) {
    if (!step.is_null()) steps.push_back(read_pre_tokenizer(step));
  }
  return std::make_shared<Sequence>(std::move(steps));
}

}  // namespace phalanx::pre_tokenizers
