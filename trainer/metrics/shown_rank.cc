// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/shown_rank.h"

#include <atomic>

namespace phalanx {
namespace {

std::atomic<bool> shows_work = true;

}  // namespace

bool shows_work_of_every_rank() { return shows_work; }

void show_work_of_every_rank(bool shows) { shows_work = shows; }

}  // namespace phalanx
