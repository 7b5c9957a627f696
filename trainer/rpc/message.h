// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/ivalue.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "trainer/rpc/rpc_error.h"
#include "trainer/rpc/values.h"

namespace phalanx::rpc {

/// Makes the handle of a reference that has come.
using ReceiveReference = std::function<RemoteReference(const std::string& owner, int64_t id)>;

/// A call as it comes.
struct Request {
  std::string function;
  Values arguments;
};

/// A call as LibTorch carries it: the name of the function, the text, the tensors, the references.
std::vector<c10::IValue> request_of(const std::string& function, const Values& arguments);
/// The other way round. Throws std::invalid_argument for what is no call of ours.
Request request_in(const std::vector<c10::IValue>& stack, const ReceiveReference& receive);

/// An answer as LibTorch carries it, and one that says what went wrong: an error is a value to
/// LibTorch, which would log it and hide its kind.
c10::IValue answer_of(const Values& values);
c10::IValue failure_of(const std::exception_ptr& error);
/// "worker 'name' (rank 1)", as errors name a worker.
std::string worker_text(const std::string& name, int64_t rank);
/// What a call of such a worker fails with at its timeout.
WorkerLost not_answered(const std::string& worker, const std::string& function,
                        std::chrono::milliseconds timeout);
/// What an answer holds. Throws WorkerLost and RemoteError, which name the worker and the function.
Values values_in(const std::vector<c10::IValue>& answer, const std::string& worker,
                 const std::string& function, const ReceiveReference& receive);

}  // namespace phalanx::rpc
