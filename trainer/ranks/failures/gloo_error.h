// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

namespace phalanx {

/// Whether Gloo threw this for a connection that was closed or stayed silent.
bool is_gloo_io_error(const std::exception& error);

/// Whether Gloo threw this for data of another size than it waits for: another rank has called
/// another collective, or with a tensor of another size. It throws in a thread of its own.
bool is_gloo_mismatch(const std::exception& error);

/// What an operation failed with, plainly. Where one times out, Gloo closes the connection, and
/// says of the others that wait on it "Application timeout caused pair closure": they timed out as
/// well. Where a group could not be made, it is the cause alone: Gloo says before it which function
/// of its own could not go on.
std::string plain_gloo_text(std::string text);

}  // namespace phalanx
