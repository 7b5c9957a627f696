// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "trainer/tokenizers/normalizers/kinds.h"

namespace phalanx::normalizers {
namespace {

using nlohmann::json;

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}

  void apply(NormalizedText& text) const override {
    if (text.text.empty()) return;
    text.text.insert(0, prefix_);
    if (text.at_start > 0) text.at_start += prefix_.size();
  }

 private:
  std::string prefix_;
};

}  // namespace

Made read_prepend(const json& object) {
  return std::make_shared<Prepend>(object.at("prepend").get<std::string>());
}

}  // namespace phalanx::normalizers
