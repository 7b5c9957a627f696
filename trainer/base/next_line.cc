// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/next_line.h"

namespace phalanx {
namespace {

bool is_left = false;

}  // namespace

void NextLine::leave_to_launcher() { is_left = true; }

bool NextLine::is_left_to_launcher() { return is_left; }

}  // namespace phalanx
