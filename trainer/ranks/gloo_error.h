// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

namespace phalanx {

/// Whether Gloo threw this for a connection that was closed or stayed silent.
bool is_gloo_io_error(const std::exception& error);

}  // namespace phalanx
