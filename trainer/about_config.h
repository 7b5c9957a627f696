// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "trainer/config/tree/schema.h"

namespace phalanx {

/// The section `about`: what people want to know of a run later. It is kept with the run; training
/// reads none of it.
struct AboutConfig {
  std::string description;
  std::map<std::string, std::string> tags;

  static void describe(config::Schema<AboutConfig>& s) {
    s.field("description", &AboutConfig::description, "what the run is for").resume_may_change();
    s.field("tags", &AboutConfig::tags, "words to find it by").resume_may_change();
  }
};

}  // namespace phalanx
