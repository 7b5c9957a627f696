// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/replicas/replica_threads.h"

#include <c10/core/Device.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/api/broken_sample.h"
#include "trainer/ranks/failures/communication_error.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;

const std::vector<at::Device> kTwo{at::kCPU, at::kCPU};

class OwnError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws it in the second replica.
template <class Error>
void fail_with(const Error& error) {
  run_in_threads(kTwo, [&](size_t i) {
    if (i == 1) throw error;
  });
}

// Who trains decides by the type what to do: leave a sample out, or look for the rank to blame.
TEST(ReplicaThreads, ThrowErrorsOfPhalanxAsTheyAre) {
  const BrokenSampleError broken({.source = "a.txt", .kind = "too long", .message = "line 7"});
  try {
    fail_with(broken);
    FAIL();
  } catch (const BrokenSampleError& error) {
    EXPECT_EQ(error.sample().source, "a.txt");
  }
  EXPECT_THROW(fail_with(CommunicationError("rank 1 is gone")), CommunicationError);
}

TEST(ReplicaThreads, KeepAnErrorOfAnotherTypeWithinTheirs) {
  try {
    fail_with(OwnError("no luck"));
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("replica 1 of 2 (cpu): no luck"));
    EXPECT_THROW(std::rethrow_if_nested(error), OwnError);
  }
}

}  // namespace
}  // namespace phalanx
