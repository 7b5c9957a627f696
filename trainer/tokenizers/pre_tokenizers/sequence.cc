// SPDX-License-Identifier: Apache-2.0
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
