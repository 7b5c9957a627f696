// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "trainer/topology/processing_unit.h"

namespace phalanx {

/// The hardware threads that this process may run on: its affinity, within its control group's
/// cpuset. hwloc finds them, and reads its own variables (HWLOC_SYNTHETIC, HWLOC_XMLFILE,
/// HWLOC_FSROOT). Throws std::runtime_error where it finds none.
ProcessingUnits allowed_units();

/// Lets all threads of this process, and those that it starts from now on, run on these alone.
/// Throws std::system_error where the kernel refuses them.
void bind_process(std::span<const ProcessingUnit> units);

/// The NUMA node of a PCI device ("0000:07:00.0"), by the kernel's number. nullopt: the kernel does
/// not know. `root` is where the file system begins.
std::optional<int64_t> numa_node_of(const std::string& pci_address,
                                    const std::filesystem::path& root = "/");

/// Cores that this process may use, at least 1: those of allowed_units(), or what the quotas of
/// control groups leave of them. Throws std::runtime_error as that does.
int64_t usable_cores();

}  // namespace phalanx
