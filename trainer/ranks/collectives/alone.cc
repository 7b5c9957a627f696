// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/collectives/alone.h"

#include <utility>

namespace phalanx {
namespace {

thread_local bool alone = false;

}  // namespace

Alone::Alone() : before_(std::exchange(alone, true)) {}
Alone::~Alone() { alone = before_; }

bool Alone::is_active() { return alone; }

}  // namespace phalanx
