// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/gloo_error.h"

#include <gloo/common/error.h>

namespace phalanx {

bool is_gloo_io_error(const std::exception& error) {
  return dynamic_cast<const gloo::IoException*>(&error) != nullptr;
}

}  // namespace phalanx
