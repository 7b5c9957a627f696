// SPDX-License-Identifier: Apache-2.0
// A program whose OpenMP is LLVM's or Intel's, which has libgomp's functions, too.
#include <gtest/gtest.h>

#include "trainer/topology/brief_waits.h"
#include "trainer/topology/waits_by_load.h"

extern "C" {

int omp_get_max_threads() { return 2; }

void GOMP_parallel(void (*)(void*), void*, unsigned, unsigned) { ADD_FAILURE() << "called"; }

void __kmpc_fork_call() {}
}

namespace phalanx {
namespace {

TEST(OtherOpenMp, IsLeftAlone) {
  EXPECT_EQ(openmp_threads(), 2) << "the functions of this program are not found";
  EXPECT_FALSE(BriefWaits::are_possible());
  EXPECT_FALSE(BriefWaits().start());
  EXPECT_FALSE(WaitsByLoad().is_on());
}

}  // namespace
}  // namespace phalanx
