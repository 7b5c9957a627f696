// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "trainer/rpc/own_functions.h"
#include "trainer/rpc/reference_state.h"
#include "trainer/rpc/values.h"

namespace phalanx::rpc {
namespace {

// Has the owner count one more handle, once the call that has the value made is over. A thread of
// the agent may be here, and that call's answer may need it: so nothing waits.
Future retained(const std::shared_ptr<RemoteReference::State>& reference) {
  const Promise promise;
  reference->made.value_or(Future(Values{})).when_done([reference, promise](const Future& made) {
    try {
      if (const auto error = made.error()) std::rethrow_exception(error);
      const Future counted = reference->open_agent()->call(
          reference->owner, kRetain, {.text = std::to_string(reference->id)}, std::nullopt);
      // The handle lives until it is counted.
      counted.when_done([reference, promise](const Future& done) {
        if (const auto error = done.error()) return promise.fail(error);
        promise.set({});
      });
    } catch (...) {
      promise.fail(std::current_exception());
    }
  });
  return promise.future();
}

}  // namespace

Future retain(const Values& values) {
  const Promise promise;
  if (values.references.empty()) promise.set({});
  const auto left = std::make_shared<std::atomic<size_t>>(values.references.size());
  for (const RemoteReference& reference : values.references) {
    retained(reference.state()).when_done([promise, left](const Future& done) {
      if (const auto error = done.error()) promise.fail(error);
      if (--*left == 0) promise.set({});
    });
  }
  return promise.future();
}

}  // namespace phalanx::rpc
