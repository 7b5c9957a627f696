// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/tree/schema.h"
#include "trainer/data/concatenated_tokens.h"
#include "trainer/data/token_source.h"
#include "trainer/registry/choice.h"

namespace phalanx {
namespace {

/// Several sources one after the other.
class Concatenation : public TokenSource {
 public:
  struct Config {
    std::vector<config::Chosen> sources;

    static void describe(config::Schema<Config>& s) {
      s.field("sources", &Config::sources, "the sources, in their order")
          .mandatory()
          .out_of(registered_choice<TokenSource>());
    }
  };

  explicit Concatenation(Config config) : config_(std::move(config)) {}

  std::shared_ptr<const TokenSet> open(const std::string& field) const override {
    std::vector<std::shared_ptr<const TokenSet>> parts;
    for (const config::Chosen& chosen : config_.sources) {
      const auto source = Registry<TokenSource>::instance().make(chosen);
      parts.push_back(source->open(fmt::format("{}.sources[{}]", field, parts.size())));
    }
    return std::make_shared<ConcatenatedTokens>(std::move(parts));
  }

 private:
  Config config_;
};

REGISTER_TOKEN_SOURCE("concatenation", Concatenation);

}  // namespace
}  // namespace phalanx
