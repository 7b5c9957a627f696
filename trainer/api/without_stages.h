// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace phalanx {

/// Beside Model: a model whose units are no chain, in which each works on the result of the one
/// before alone. The trainer pipeline refuses it before anything starts.
class WithoutStages {
 public:
  virtual ~WithoutStages() = default;

  /// A sentence's part: "t5 has no stages, as ...".
  virtual std::string_view why_no_stages() const = 0;
};

}  // namespace phalanx
