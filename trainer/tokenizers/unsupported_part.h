// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/base/user_error.h"

namespace phalanx {

/// A part of a tokenizer that what reads it does not support; something else may.
class UnsupportedPart : public UserError {
 public:
  using UserError::UserError;
};

}  // namespace phalanx
