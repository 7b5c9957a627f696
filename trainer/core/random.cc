#include "trainer/core/random.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>
#include <stdexcept>
#include <string>

namespace phalanx {
namespace {

// The generator with its lock held, as every user of it must.
template <class Function>
auto with_generator(Function function) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard<std::mutex> lock(generator.mutex());
  return function(generator);
}

}  // namespace

void seed_everything(uint64_t seed) {
  with_generator([&](at::Generator& generator) { generator.set_current_seed(seed); });
}

at::Tensor cpu_rng_state() {
  return with_generator([](at::Generator& generator) { return generator.get_state(); });
}

void set_cpu_rng_state(const at::Tensor& state) {
  try {
    with_generator([&](at::Generator& generator) { generator.set_state(state); });
  } catch (const c10::Error& error) {
    throw std::runtime_error(std::string("this is no state of the random number generator: ") +
                             error.what_without_backtrace());
  }
}

}  // namespace phalanx
