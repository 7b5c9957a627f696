// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Generator.h>

#include <optional>

namespace phalanx::test_device {

/// A generator of the device: the CPU's, which draws the same numbers.
at::Generator make_generator(int device);
const at::Generator& default_generator(int device);
/// The CPU's generator in it.
at::Generator cpu_generator_of(const at::Generator& generator);

/// For operators that draw from the CPU's default generator: it is in the state of this device's
/// default generator meanwhile.
class SwappedGenerators {
 public:
  explicit SwappedGenerators(int device);
  SwappedGenerators(const SwappedGenerators&) = delete;
  SwappedGenerators& operator=(const SwappedGenerators&) = delete;
  ~SwappedGenerators();

 private:
  at::Generator ours_;
  at::Generator cpus_;
  c10::intrusive_ptr<c10::TensorImpl> state_of_cpus_;
};

}  // namespace phalanx::test_device
