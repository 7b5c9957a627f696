// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/message.h"

#include <fmt/format.h>

#include <span>
#include <stdexcept>
#include <utility>

#include "trainer/ranks/failures/failure.h"
#include "trainer/tensors/error_text.h"

namespace phalanx::rpc {
namespace {

using c10::IValue;

// What the first text of an answer says.
constexpr const char* kDone = "done";
constexpr const char* kFailed = "failed";
// It could not go on without another worker: the cause lies elsewhere.
constexpr const char* kLost = "lost";

std::vector<IValue> packed(const std::string& head, const Values& values) {
  std::vector<IValue> stack{head, values.text};
  stack.reserve(2 + values.tensors.size() + values.references.size());
  for (const at::Tensor& tensor : values.tensors) {
    if (!tensor.defined() || !tensor.is_cpu()) {
      throw std::invalid_argument("a call carries defined tensors in host memory only");
    }
    stack.emplace_back(tensor);
  }
  for (const RemoteReference& reference : values.references) {
    stack.emplace_back(fmt::format("{} {}", reference.id(), reference.owner()));
  }
  return stack;
}

Values unpacked(std::span<const IValue> stack, const ReceiveReference& receive) {
  Values values;
  for (const IValue& value : stack) {
    if (value.isTensor()) {
      values.tensors.push_back(value.toTensor());
      continue;
    }
    const std::string text = value.toStringRef();
    const size_t blank = text.find(' ');
    values.references.push_back(receive(text.substr(blank + 1), std::stoll(text.substr(0, blank))));
  }
  return values;
}

// The two texts that come first, and the rest.
void require_texts(const std::vector<IValue>& stack) {
  if (stack.size() >= 2 && stack[0].isString() && stack[1].isString()) return;
  throw std::invalid_argument("a message that no worker of Phalanx has sent");
}

}  // namespace

std::vector<IValue> request_of(const std::string& function, const Values& arguments) {
  return packed(function, arguments);
}

Request request_in(const std::vector<IValue>& stack, const ReceiveReference& receive) {
  require_texts(stack);
  Request request{.function = stack[0].toStringRef(),
                  .arguments = unpacked(std::span(stack).subspan(2), receive)};
  request.arguments.text = stack[1].toStringRef();
  return request;
}

IValue answer_of(const Values& values) {
  try {
    return c10::ivalue::Tuple::create(packed(kDone, values));
  } catch (...) {
    return failure_of(std::current_exception());
  }
}

IValue failure_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    const char* head = is_communication_error(known) ? kLost : kFailed;
    return c10::ivalue::Tuple::create(packed(head, {.text = error_text(known)}));
  } catch (...) {
    return c10::ivalue::Tuple::create(packed(kFailed, {.text = "an exception of no known type"}));
  }
}

std::string worker_text(const std::string& name, int64_t rank) {
  return fmt::format("worker '{}' (rank {})", name, rank);
}

WorkerLost not_answered(const std::string& worker, const std::string& function,
                        std::chrono::milliseconds timeout) {
  return WorkerLost(fmt::format("{} has not answered '{}' in {} s: timeout", worker, function,
                                std::chrono::duration<double>(timeout).count()));
}

Values values_in(const std::vector<IValue>& answer, const std::string& worker,
                 const std::string& function, const ReceiveReference& receive) {
  require_texts(answer);
  const std::string head = answer[0].toStringRef();
  const std::string text = answer[1].toStringRef();
  if (head == kLost) {
    throw WorkerLost(fmt::format("{} could not go on in '{}': {}", worker, function, text));
  }
  if (head != kDone)
    throw RemoteError(fmt::format("{} failed in '{}': {}", worker, function, text));
  Values values = unpacked(std::span(answer).subspan(2), receive);
  values.text = text;
  return values;
}

}  // namespace phalanx::rpc
