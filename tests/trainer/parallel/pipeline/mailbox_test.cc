// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/pipeline/mailbox.h"

#include <gtest/gtest.h>

#include <thread>

namespace phalanx::pipeline {
namespace {

TEST(Mailbox, GivesEachLetterOnceByItsKey) {
  Mailbox mailbox;
  const rpc::Function put = mailbox.put();
  put(Mailbox::addressed("activation 2", {.text = "a\nb"}));
  put(Mailbox::addressed("activation 1", {.text = "c"}));
  EXPECT_EQ(mailbox.take("activation 1", std::chrono::milliseconds(0))->text, "c");
  EXPECT_EQ(mailbox.take("activation 2", std::chrono::milliseconds(0))->text, "a\nb");
  EXPECT_FALSE(mailbox.take("activation 2", std::chrono::milliseconds(0)));
}

TEST(Mailbox, WaitsForALetter) {
  Mailbox mailbox;
  std::thread sender(
      [put = mailbox.put()] { put(Mailbox::addressed("gradient 1", {.text = "x"})); });
  EXPECT_EQ(mailbox.take("gradient 1", std::chrono::minutes(1))->text, "x");
  sender.join();
}

}  // namespace
}  // namespace phalanx::pipeline
