// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/failures/gloo_error.h"

#include <gloo/common/error.h>

#include <string_view>

namespace phalanx {

bool is_gloo_io_error(const std::exception& error) {
  return dynamic_cast<const gloo::IoException*>(&error) != nullptr;
}

// Its type is that of every condition that does not hold.
bool is_gloo_mismatch(const std::exception& error) {
  return std::string_view(error.what()).find("op.preamble.length <= op.nbytes") !=
         std::string_view::npos;
}

std::string plain_gloo_text(std::string text) {
  constexpr std::string_view kConnecting = "Gloo connectFullMesh failed with ";
  if (text.starts_with(kConnecting)) text.erase(0, kConnecting.size());
  constexpr std::string_view kClosed = "Application timeout caused pair closure";
  const size_t found = text.find(kClosed);
  if (found == std::string::npos) return text;
  return text.replace(found, kClosed.size(),
                      "Timed out, with an operation that was begun before it");
}

}  // namespace phalanx
