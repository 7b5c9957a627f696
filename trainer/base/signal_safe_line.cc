// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/signal_safe_line.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace phalanx {

SignalSafeLine& SignalSafeLine::add(std::string_view part) noexcept {
  const std::size_t taken = std::min(part.size(), text_.size() - size_);
  std::copy_n(part.data(), taken, text_.data() + size_);
  size_ += taken;
  return *this;
}

void SignalSafeLine::write(int descriptor) const noexcept {
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(descriptor, text_.data(), size_);
  errno = error;
}

}  // namespace phalanx
