// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace phalanx {

/// This host's name; "localhost" where it has none.
std::string host_name();

/// What tells this host from every other: its name, and its kernel's boot where the kernel tells
/// it. Neither would do alone: hosts that were installed from one image may share a name, and
/// containers that do not reach each other over loopback share a kernel. The same for all processes
/// of a host, or of a container with a name of its own; another one after a reboot. `root` is where
/// the file system begins.
std::string host_identity(const std::filesystem::path& root = "/");

/// What tells the processes that reach each other over 127.0.0.1 from all others: the kernel's boot
/// and the network namespace. Containers of one host may have one each, or share one.
std::string loopback_identity(const std::filesystem::path& root = "/");

}  // namespace phalanx
