// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/uncounted_pass.h"

#include <utility>

namespace phalanx {
namespace {

thread_local bool uncounted = false;

}  // namespace

bool is_uncounted_pass() { return uncounted; }

UncountedPass::UncountedPass(bool is_uncounted) : before_(std::exchange(uncounted, is_uncounted)) {}
UncountedPass::~UncountedPass() { uncounted = before_; }

}  // namespace phalanx
