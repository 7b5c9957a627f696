// SPDX-License-Identifier: Apache-2.0
#include "trainer/tensors/random.h"

#include <ATen/Context.h>
#include <c10/core/DeviceType.h>

#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/base/quietly.h"

namespace phalanx {
namespace {

std::vector<at::Device> devices_with(at::Device device) {
  if (device.is_cpu()) return {device};
  return {at::kCPU, device};
}

std::string type_name(at::Device device) {
  return c10::DeviceTypeName(device.type(), /*lower_case=*/true);
}

// The generator with its lock held, as every user of it must.
template <class Function>
auto with_generator(at::Device device, Function function) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  std::lock_guard<std::mutex> lock(generator.mutex());
  return function(generator);
}

}  // namespace

void seed_everything(uint64_t seed, at::Device device) {
  for (const at::Device each : devices_with(device)) {
    with_generator(each, [&](at::Generator& generator) { generator.set_current_seed(seed); });
  }
}

RngStates rng_states(at::Device device) {
  RngStates states;
  for (const at::Device each : devices_with(device)) {
    states[type_name(each)] =
        with_generator(each, [](at::Generator& generator) { return generator.get_state(); });
  }
  return states;
}

void set_rng_states(const RngStates& states, at::Device device) {
  for (const at::Device each : devices_with(device)) {
    const auto state = states.find(type_name(each));
    if (state == states.end()) continue;
    try {
      with_generator(each, [&](at::Generator& generator) { generator.set_state(state->second); });
    } catch (const c10::Error& error) {
      throw std::runtime_error(std::string("this is no state of the random number generator: ") +
                               error.what_without_backtrace());
    }
  }
}

RngGuard::~RngGuard() {
  quietly([this] { set_rng_states(states_, device_); });
}

}  // namespace phalanx
