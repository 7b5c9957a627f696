// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "trainer/tokenizers/decoders/kinds.h"
#include "trainer/tokenizers/metaspace_options.h"

namespace phalanx::decoders {
namespace {

using nlohmann::json;

// Shows the signs for spaces as spaces; those of the first token are left out where one was put
// there.
class Metaspace final : public Decoder {
 public:
  explicit Metaspace(MetaspaceOptions options) : options_(std::move(options)) {}

  void take(const TokenPart& part, DecoderState& state, Give give) const override {
    const bool drops = !state.has_begun && options_.prefix != MetaspaceOptions::Prefix::never;
    const std::string text = replaced(part.text, options_.replacement, drops ? "" : " ");
    if (part.ends) state.has_begun = true;
    give({.text = text, .begins = part.begins, .ends = part.ends});
  }

 private:
  MetaspaceOptions options_;
};

}  // namespace

Made read_metaspace(const json& object) {
  return std::make_shared<Metaspace>(read_metaspace_options(object));
}

}  // namespace phalanx::decoders
