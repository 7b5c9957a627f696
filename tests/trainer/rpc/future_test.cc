// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/future.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "trainer/rpc/functions.h"

namespace phalanx::rpc {
namespace {

TEST(Future, IsAnsweredByAnotherThread) {
  const Promise promise;
  EXPECT_FALSE(promise.future().is_done());
  std::jthread other([&] { promise.set({.text = "answer"}); });
  EXPECT_EQ(promise.future().wait().text, "answer");
  EXPECT_TRUE(promise.future().is_done());
}

TEST(Future, KeepsItsFirstAnswer) {
  const Promise promise;
  promise.set({.text = "first"});
  promise.set({.text = "second"});
  promise.fail(std::make_exception_ptr(std::runtime_error("third")));
  EXPECT_EQ(promise.future().wait().text, "first");
}

TEST(Future, ThrowsWhatItFailedWith) {
  const Promise promise;
  promise.fail(std::make_exception_ptr(std::out_of_range("too far")));
  EXPECT_THROW(promise.future().wait(), std::out_of_range);
  EXPECT_TRUE(promise.future().error());
}

TEST(Future, IsFollowedByWhatIsMadeOfIt) {
  const auto twice = [](Values values) { return Values{.text = values.text + values.text}; };
  const Promise promise;
  const Future later = promise.future().then(twice);
  const Future now = Future(Values{.text = "b"}).then(twice);
  EXPECT_EQ(now.wait().text, "bb");
  EXPECT_FALSE(later.is_done());
  promise.set({.text = "a"});
  EXPECT_EQ(later.wait().text, "aa");
}

TEST(Future, PassesAnErrorOnPastWhatWouldFollow) {
  const Promise promise;
  bool is_called = false;
  const Future next = promise.future().then([&](Values values) {
    is_called = true;
    return values;
  });
  promise.fail(std::make_exception_ptr(std::runtime_error("lost")));
  EXPECT_THROW(next.wait(), std::runtime_error);
  EXPECT_FALSE(is_called);
}

TEST(Future, FailsWhereItIsNotDoneWithinATime) {
  const auto late = std::make_exception_ptr(std::out_of_range("late"));
  const Promise promise;
  const Future limited = promise.future().within(std::chrono::milliseconds(1), late);
  EXPECT_THROW(limited.wait(), std::out_of_range);
  promise.set({.text = "answer"});
  EXPECT_THROW(limited.wait(), std::out_of_range);
  EXPECT_EQ(promise.future().wait().text, "answer");
}

TEST(Future, IsTheSameWithinATime) {
  const auto late = std::make_exception_ptr(std::out_of_range("late"));
  const Promise good;
  const Promise bad;
  const Future answered = good.future().within(std::chrono::hours(1), late);
  const Future failed = bad.future().within(std::chrono::hours(1), late);
  good.set({.text = "answer"});
  bad.fail(std::make_exception_ptr(std::runtime_error("lost")));
  EXPECT_EQ(answered.wait().text, "answer");
  EXPECT_THROW(failed.wait(), std::runtime_error);
}

TEST(WaitAll, ThrowsTheFirstErrorOnceAllAreDone) {
  const Promise good;
  const Promise bad;
  bad.fail(std::make_exception_ptr(std::runtime_error("bad")));
  std::jthread other([&] { good.set({}); });
  EXPECT_THROW(wait_all({bad.future(), good.future()}), std::runtime_error);
  EXPECT_TRUE(good.future().is_done());
  EXPECT_EQ(wait_all({Future(Values{.text = "a"}), Future(Values{.text = "b"})})[1].text, "b");
}

TEST(RegisterFunction, KeepsTheFirstOfAName) {
  EXPECT_TRUE(register_function(
      "named", function_of([](const Values&) { return Values{.text = "one"}; }), "first.cc", 1));
  EXPECT_FALSE(register_function(
      "named", function_of([](const Values&) { return Values{.text = "two"}; }), "second.cc", 2));
  EXPECT_EQ(registered_functions().at("named")({}).wait().text, "one");
}

}  // namespace
}  // namespace phalanx::rpc
