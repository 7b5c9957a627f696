// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/served.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "trainer/rpc/registered.h"

namespace phalanx::rpc {

Future Served::call(const std::string& function, Values arguments) const {
  const auto own = functions_.find(function);
  if (own != functions_.end()) return own->second(std::move(arguments));
  const FunctionTable& registered = registered_functions();
  const auto known = registered.find(function);
  if (known == registered.end()) {
    throw std::invalid_argument(fmt::format("there is no function '{}'", function));
  }
  return known->second(std::move(arguments));
}

void Served::make(int64_t id, const std::string& function, Values arguments) {
  const Promise promise;
  {
    const std::scoped_lock lock(mutex_);
    kept_.emplace(id, Kept{.value = promise.future()});
  }
  try {
    call(function, std::move(arguments)).when_done([promise](const Future& made) {
      if (made.error()) return promise.fail(made.error());
      promise.set(made.wait());
    });
  } catch (...) {
    promise.fail(std::current_exception());
  }
}

Served::Kept& Served::kept(int64_t id) const {
  const auto found = kept_.find(id);
  if (found != kept_.end()) return found->second;
  throw std::logic_error(fmt::format("value {} of a remote reference has been dropped", id));
}

Future Served::value(int64_t id) const {
  const std::scoped_lock lock(mutex_);
  return kept(id).value;
}

const Values& Served::local_value(int64_t id) const {
  Values made = value(id).wait();
  const std::scoped_lock lock(mutex_);
  Kept& entry = kept(id);
  if (!entry.local) entry.local = std::make_shared<Values>(std::move(made));
  return *entry.local;
}

void Served::retain(int64_t id) {
  const std::scoped_lock lock(mutex_);
  ++kept(id).handles;
}

void Served::release(int64_t id) {
  // A value may hold handles itself: they go without the lock.
  std::map<int64_t, Kept>::node_type dropped;
  const std::scoped_lock lock(mutex_);
  const auto found = kept_.find(id);
  if (found != kept_.end() && --found->second.handles == 0) dropped = kept_.extract(found);
}

std::size_t Served::values() const {
  const std::scoped_lock lock(mutex_);
  return kept_.size();
}

}  // namespace phalanx::rpc
