// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/config/tree/forward.h"

namespace phalanx::config {

/// The `Config` of a class that has nothing to set. Its templates of schema.h are instantiated in
/// no_fields.cc, so that who registers such a class does not include that header.
struct NoFields {
  static void describe(Schema<NoFields>& s);
};

}  // namespace phalanx::config
