// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

// Stand-in, see ../BUILD.
namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

namespace transport {

class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = 0;
};

}  // namespace transport
}  // namespace gloo
