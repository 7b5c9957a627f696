// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/replicas/replica_threads.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "trainer/api/broken_sample.h"
#include "trainer/base/user_error.h"
#include "trainer/parallel/replicas/own_random_numbers.h"
#include "trainer/precision/autocast.h"
#include "trainer/ranks/failures/failure.h"
#include "trainer/tensors/error_text.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

// One for each replica, so that a run that goes on from a checkpoint has the same.
std::vector<uint64_t> draw_seeds(size_t count) {
  const at::NoGradGuard no_grad;
  const at::Tensor drawn = tensors::empty({static_cast<int64_t>(count)}, at::kLong);
  drawn.random_();
  const int64_t* const first = drawn.const_data_ptr<int64_t>();
  return {first, first + count};
}

void seed_device(at::Device device, uint64_t seed) {
  if (device.is_cpu()) return;
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(seed);
}

// What a replica's thread has of the one that has started it.
struct Modes {
  bool has_gradients;
  std::optional<AutocastTo> autocast;
  std::vector<std::optional<c10::Stream>> streams;  ///< By replica; none on the CPU.
};

// Values of the original are copied to replicas on these, and results gathered.
std::vector<std::optional<c10::Stream>> current_streams(std::span<const at::Device> devices) {
  std::vector<std::optional<c10::Stream>> streams;
  for (const at::Device device : devices) {
    streams.push_back(
        device.is_cpu()
            ? std::nullopt
            : std::optional(c10::impl::VirtualGuardImpl(device.type()).getStream(device)));
  }
  return streams;
}

void run_one(at::Device device, const std::optional<c10::Stream>& stream, uint64_t seed,
             const Modes& modes, const std::function<void()>& action) {
  const c10::OptionalStreamGuard on_device(stream);
  seed_device(device, seed);
  const OwnRandomNumbers random_numbers(seed);
  const at::AutoGradMode gradients(modes.has_gradients);
  const Autocast autocast(modes.autocast);
  action();
}

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return error_text(known);
  } catch (...) {
    return "an error that is no std::exception";
  }
}

[[noreturn]] void rethrow(const std::exception_ptr& error, const std::string& place,
                          const std::string& others) {
  const auto told = [&](const std::exception& known) {
    return fmt::format("{}: {}{}", place, error_text(known), others);
  };
  try {
    std::rethrow_exception(error);
  } catch (c10::Error& known) {
    known.add_context(place + others);
    throw;
  } catch (const std::bad_alloc&) {
    throw;  // explained by its type
  } catch (const BrokenSampleError&) {
    throw;
  } catch (const UserError& known) {
    throw UserError(told(known));
  } catch (const std::logic_error& known) {
    throw std::logic_error(told(known));
  } catch (const std::exception& known) {
    if (is_communication_error(known)) throw;
    std::throw_with_nested(std::runtime_error(told(known)));
  }
}

void throw_first(const std::vector<std::exception_ptr>& errors,
                 std::span<const at::Device> devices) {
  const auto name = [&](size_t i) {
    return fmt::format("replica {} of {} ({})", i, devices.size(), devices[i].str());
  };
  std::optional<size_t> first;
  std::string others;
  for (size_t i = 0; i < errors.size(); ++i) {
    if (!errors[i]) continue;
    if (first) {
      others += fmt::format("\n{}, too: {}", name(i), text_of(errors[i]));
    } else {
      first = i;
    }
  }
  if (first) rethrow(errors[*first], name(*first), others);
}

}  // namespace

void run_in_threads(std::span<const at::Device> devices,
                    const std::function<void(size_t replica)>& action) {
  const std::vector<uint64_t> seeds = draw_seeds(devices.size());
  const Modes modes{.has_gradients = at::GradMode::is_enabled(),
                    .autocast = Autocast::current(devices.front().type()),
                    .streams = current_streams(devices)};
  std::vector<std::exception_ptr> errors(devices.size());
  const auto run = [&](size_t i) {
    try {
      run_one(devices[i], modes.streams[i], seeds[i], modes, [&] { action(i); });
    } catch (...) {
      errors[i] = std::current_exception();
    }
  };
  if (at::hasThreadLocalCallbacks()) {
    for (size_t i = 0; i < devices.size(); ++i) run(i);
  } else {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < devices.size(); ++i) threads.emplace_back(run, i);
    run(0);
  }
  throw_first(errors, devices);
}

}  // namespace phalanx
