// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

// Stand-in, see ../../BUILD. The names and bases are Gloo's (gloo/common/error.h), so that a catch
// finds what libtorch_cpu throws.
namespace gloo {

struct Exception : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A connection was closed or reset, or nothing came in time.
struct IoException : public Exception {
  using Exception::Exception;
};

}  // namespace gloo
