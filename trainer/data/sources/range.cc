// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/data/token_range.h"
#include "trainer/data/token_source.h"
#include "trainer/registry/choice.h"

namespace phalanx {
namespace {

/// A part of another source.
class Range : public TokenSource {
 public:
  struct Config {
    config::Chosen source;
    int64_t begin = 0;
    std::optional<int64_t> end;

    static void describe(config::Schema<Config>& s) {
      s.field("source", &Config::source, "the source that it is a part of")
          .mandatory()
          .out_of(registered_choice<TokenSource>());
      s.field("begin", &Config::begin, "its first token").at_least(0).count();
      s.field("end", &Config::end, "the token behind its last one; null: the source's end")
          .at_least(1)
          .count();
    }
  };

  explicit Range(Config config) : config_(std::move(config)) {}

  std::shared_ptr<const TokenSet> open(const std::string& field) const override {
    const auto source = Registry<TokenSource>::instance().make(config_.source);
    auto whole = source->open(field + ".source");
    const int64_t size = whole->size();
    const int64_t end = config_.end.value_or(size);
    if (config_.begin >= end || end > size) {
      throw UserError(
          fmt::format("{}: tokens from {} to {} are no part of the source, which has {}: "
                      "set begin and end below that",
                      field, config_.begin, end, size));
    }
    return std::make_shared<TokenRange>(std::move(whole), config_.begin, end);
  }

 private:
  Config config_;
};

REGISTER_TOKEN_SOURCE("range", Range);

}  // namespace
}  // namespace phalanx
