// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/future.h"

#include <utility>

#include "trainer/rpc/context_id.h"
#include "trainer/rpc/future_state.h"

namespace phalanx::rpc {
namespace {

// False where it has been answered before.
bool answer(Future::State& state, const std::function<void()>& write) {
  std::vector<std::function<void()>> actions;
  {
    const std::scoped_lock lock(state.mutex);
    if (state.is_done()) return false;
    write();
    actions.swap(state.actions);
  }
  state.done.notify_all();
  for (const auto& action : actions) action();
  return true;
}

}  // namespace

Future::Future(Values values) : state_(std::make_shared<State>()) {
  state_->values = std::move(values);
}
Future::Future(std::shared_ptr<State> state) : state_(std::move(state)) {}

bool Future::is_done() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->is_done();
}

Values Future::wait() const {
  std::unique_lock lock(state_->mutex);
  const auto is_done = [&] { return state_->is_done(); };
  if (!state_->deadline) {
    state_->done.wait(lock, is_done);
  } else if (!state_->done.wait_until(lock, *state_->deadline, is_done)) {
    lock.unlock();
    answer(*state_, [&] { state_->error = state_->error_at_deadline; });
    lock.lock();
  }
  if (state_->error) std::rethrow_exception(state_->error);
  return *state_->values;
}

std::exception_ptr Future::error() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->error;
}

void Future::when_done(std::function<void(const Future&)> action) const {
  const auto call = [state = state_, action = std::move(action), context = current_context()] {
    const ContextScope scope(context);
    try {
      action(Future(state));
    } catch (...) {  // Nobody is there to hear of it.
    }
  };
  {
    const std::scoped_lock lock(state_->mutex);
    if (!state_->is_done()) {
      state_->actions.emplace_back(call);
      return;
    }
  }
  call();
}

Future Future::then(std::function<Values(Values)> next) const {
  const Promise promise;
  when_done([promise, next = std::move(next)](const Future& done) {
    try {
      promise.set(next(done.wait()));
    } catch (...) {
      promise.fail(std::current_exception());
    }
  });
  return promise.future();
}

Future Future::within(std::chrono::milliseconds timeout, std::exception_ptr error) const {
  if (is_done()) return *this;
  const auto state = std::make_shared<State>();
  state->deadline = std::chrono::steady_clock::now() + timeout;
  state->error_at_deadline = std::move(error);
  when_done([state](const Future& done) {
    answer(*state, [&] {
      if ((state->error = done.error())) return;
      state->values = done.wait();
    });
  });
  return Future(state);
}

Promise::Promise() : state_(std::make_shared<Future::State>()) {}

Future Promise::future() const { return Future(state_); }

void Promise::set(Values values) const {
  answer(*state_, [&] { state_->values = std::move(values); });
}

void Promise::fail(std::exception_ptr error) const {
  answer(*state_, [&] { state_->error = std::move(error); });
}

std::vector<Values> wait_all(const std::vector<Future>& futures) {
  std::vector<Values> all;
  std::exception_ptr first;
  for (const Future& future : futures) {
    try {
      all.push_back(future.wait());
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
  return all;
}

}  // namespace phalanx::rpc
