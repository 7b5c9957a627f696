// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/logging_config.h"

#include <algorithm>
#include <optional>
#include <string>

#include "trainer/config/tree/schema.h"
#include "trainer/metrics/sink.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

// Two that would write the same.
std::optional<std::string> repeated_sink(const LoggingConfig& config) {
  for (const config::Chosen& sink : config.sinks) {
    const auto is_same = [&](const config::Chosen& other) {
      return config::same_value(sink.section(), other.section());
    };
    if (std::count_if(config.sinks.begin(), config.sinks.end(), is_same) > 1) {
      return "sinks: '" + sink.name() + "' is listed twice";
    }
  }
  return std::nullopt;
}

}  // namespace

void LoggingConfig::describe(config::Schema<LoggingConfig>& s) {
  s.field("every_n_steps", &LoggingConfig::every_n_steps,
          "log the first, the last and every n-th step")
      .count()
      .unit("steps")
      .at_least(1)
      .resume_may_change();
  s.field("sinks", &LoggingConfig::sinks,
          "where records go: names, or sections with a sink's own fields")
      .out_of(registered_choice<Sink>())
      .resume_may_change();
  s.check(repeated_sink);
}

}  // namespace phalanx
