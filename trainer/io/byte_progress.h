// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/io/work_progress.h"

namespace phalanx {

/// How far some work is, in bytes.
struct ByteProgress : WorkProgress {};

}  // namespace phalanx
