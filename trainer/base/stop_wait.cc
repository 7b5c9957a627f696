// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/stop_wait.h"

#include <atomic>

namespace phalanx {
namespace {

std::atomic<const char*> awaited = "the present work";
static_assert(std::atomic<const char*>::is_always_lock_free);

}  // namespace

StopWait::StopWait(const char* what) : outer_(awaited.exchange(what)) {}

StopWait::~StopWait() { awaited = outer_; }

const char* StopWait::present() { return awaited; }

}  // namespace phalanx
