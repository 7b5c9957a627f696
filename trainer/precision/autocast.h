// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <optional>

namespace phalanx {

/// Operators on this type of device compute in `dtype` where that is safe, by PyTorch's lists.
struct AutocastTo {
  c10::DeviceType device = c10::DeviceType::CPU;
  c10::ScalarType dtype = c10::ScalarType::BFloat16;

  bool operator==(const AutocastTo&) const = default;
};

/// torch.autocast for the length of a scope, which C++ has in parts only (pytorch issue 44710):
/// parameters are cast once a scope, however often they are used. Scopes may nest.
class Autocast {
 public:
  /// None: changes nothing.
  explicit Autocast(std::optional<AutocastTo> to);
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
  ~Autocast();

  /// What is in force on this thread now for a type of device.
  static std::optional<AutocastTo> current(c10::DeviceType device);

 private:
  std::optional<AutocastTo> to_;
  bool was_enabled_ = false;
  c10::ScalarType previous_dtype_ = c10::ScalarType::Undefined;
};

}  // namespace phalanx
