// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/served.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace phalanx::rpc {
namespace {

FunctionTable functions() {
  return {{"echo", function_of([](Values values) { return values; })},
          {"break", function_of([](const Values&) -> Values {
             throw std::runtime_error("it cannot be made");
           })}};
}

TEST(Served, CallsItsFunctionsAndThoseThatAreRegistered) {
  const Served served(functions());
  EXPECT_EQ(served.call("echo", {.text = "a"}).wait().text, "a");
  EXPECT_THROW(served.call("break", {}), std::runtime_error);
  EXPECT_THROW(served.call("no_such_function", {}), std::invalid_argument);
  register_function("served_test", function_of([](const Values&) { return Values{.text = "b"}; }),
                    "served_test.cc", 1);
  EXPECT_EQ(served.call("served_test", {}).wait().text, "b");
}

TEST(Served, KeepsAValueAsLongAsThereAreHandles) {
  Served served(functions());
  served.make(7, "echo", {.text = "kept"});
  EXPECT_EQ(served.value(7).wait().text, "kept");
  EXPECT_EQ(served.values(), 1);
  served.retain(7);
  served.release(7);
  EXPECT_EQ(served.value(7).wait().text, "kept");
  served.release(7);
  EXPECT_EQ(served.values(), 0);
  EXPECT_THROW(served.value(7), std::logic_error);
  EXPECT_THROW(served.retain(7), std::logic_error);
  EXPECT_NO_THROW(served.release(7)) << "its handle may have been counted out by others";
}

TEST(Served, HasOneLocalValue) {
  Served served(functions());
  served.make(7, "echo", {.text = "kept"});
  const Values& first = served.local_value(7);
  EXPECT_EQ(first.text, "kept");
  EXPECT_EQ(&first, &served.local_value(7));
}

TEST(Served, KeepsTheErrorOfAValueThatCannotBeMade) {
  Served served(functions());
  served.make(7, "break", {});
  served.make(8, "no_such_function", {});
  EXPECT_THROW(served.value(7).wait(), std::runtime_error);
  EXPECT_THROW(served.value(8).wait(), std::invalid_argument);
  EXPECT_THROW(served.local_value(7), std::runtime_error);
}

TEST(Served, AnswersOnceALateValueIsThere) {
  const Promise late;
  Served served({{"late", function_of([&](const Values&) { return late.future(); })}});
  served.make(7, "late", {});
  const Future value = served.value(7);
  EXPECT_FALSE(value.is_done());
  late.set({.text = "there"});
  EXPECT_EQ(value.wait().text, "there");
}

// A value may hold the last handle of another one: that is given up without the lock.
TEST(Served, DropsAValueThatDropsAnother) {
  Served served(functions());
  const auto release = [&served](RemoteReference::State*) { served.release(8); };
  served.make(8, "echo", {});
  served.make(
      7, "echo",
      {.references = {RemoteReference(std::shared_ptr<RemoteReference::State>(nullptr, release))}});
  EXPECT_EQ(served.values(), 2);
  served.release(7);
  EXPECT_EQ(served.values(), 0);
}

}  // namespace
}  // namespace phalanx::rpc
