// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/message.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace phalanx::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

/// Notes the references that come; their handles have no state.
struct Received {
  std::vector<std::pair<std::string, int64_t>> references;

  ReceiveReference receive() {
    return [this](const std::string& owner, int64_t id) {
      references.emplace_back(owner, id);
      return RemoteReference(nullptr);
    };
  }
};

const ReceiveReference kNone = [](const std::string&, int64_t) -> RemoteReference {
  throw std::logic_error("no reference is expected");
};

std::vector<c10::IValue> elements_of(const c10::IValue& answer) {
  return answer.toTuple()->elements().vec();
}

Values taken(const c10::IValue& answer) {
  return values_in(elements_of(answer), "worker 'server' (rank 1)", "lookup", kNone);
}

template <class Error>
std::string error_of(const c10::IValue& answer) {
  try {
    taken(answer);
  } catch (const Error& error) {
    return error.what();
  }
  return "another error, or none";
}

TEST(Message, CarriesACallWithAnyBytes) {
  const std::string text("blank \0 zero\nline", 17);
  const Request request = request_in(
      request_of("look up", {.tensors = {at::arange(3), at::arange(2)}, .text = text}), kNone);
  EXPECT_EQ(request.function, "look up");
  EXPECT_EQ(request.arguments.text, text);
  ASSERT_EQ(request.arguments.tensors.size(), 2);
  EXPECT_TRUE(request.arguments.tensors[1].equal(at::arange(2)));
}

TEST(Message, CarriesReferencesByOwnerAndNumber) {
  Received received;
  const std::vector<c10::IValue> stack{"function", "text", "7 worker:1", "8 worker:2"};
  const Request request = request_in(stack, received.receive());
  EXPECT_EQ(request.arguments.references.size(), 2);
  EXPECT_THAT(received.references, ElementsAre(Pair("worker:1", 7), Pair("worker:2", 8)));
}

TEST(Message, RefusesWhatNoWorkerSends) {
  for (const std::vector<c10::IValue>& stack :
       {std::vector<c10::IValue>{}, std::vector<c10::IValue>{"function"},
        std::vector<c10::IValue>{"function", 3}, std::vector<c10::IValue>{at::arange(2), "text"}}) {
    EXPECT_THROW(request_in(stack, kNone), std::invalid_argument) << stack.size();
  }
}

TEST(Message, RefusesTensorsThatAreNotDefined) {
  EXPECT_THROW(request_of("function", {.tensors = {at::Tensor()}}), std::invalid_argument);
}

TEST(Message, AnswersWithValues) {
  const Values values = taken(answer_of({.tensors = {at::arange(3)}, .text = "text"}));
  EXPECT_EQ(values.text, "text");
  EXPECT_TRUE(values.tensors.at(0).equal(at::arange(3)));
}

// What cannot be sent is an error of the function, and not a call without an answer.
TEST(Message, AnswersWithWhyValuesCannotBeSent) {
  EXPECT_EQ(error_of<RemoteError>(answer_of({.tensors = {at::Tensor()}})),
            "worker 'server' (rank 1) failed in 'lookup': a call carries defined tensors in host "
            "memory only");
}

TEST(Message, KeepsTheKindOfAnError) {
  const auto failure = [](const auto& error) { return failure_of(std::make_exception_ptr(error)); };
  EXPECT_EQ(error_of<RemoteError>(failure(std::out_of_range("row 7"))),
            "worker 'server' (rank 1) failed in 'lookup': row 7");
  EXPECT_EQ(error_of<WorkerLost>(failure(WorkerLost("worker 'c' (rank 2) is gone"))),
            "worker 'server' (rank 1) could not go on in 'lookup': worker 'c' (rank 2) is gone");
  EXPECT_EQ(error_of<RemoteError>(failure(7)),
            "worker 'server' (rank 1) failed in 'lookup': an exception of no known type");
}

}  // namespace
}  // namespace phalanx::rpc
