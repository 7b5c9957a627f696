// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stand-in, see ../../BUILD.
namespace gloo::transport {

class Device;

}  // namespace gloo::transport
