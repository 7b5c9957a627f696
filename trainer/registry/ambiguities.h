// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "trainer/config/tree/declaration.h"

namespace phalanx {

/// What a config could not tell apart in the classes that a declaration lets it choose from: a
/// class with a field `name`, which is the class's own; a preset with the name of another class's
/// preset or of a class. One message each, with the places of the registrations.
std::vector<std::string> ambiguities(const config::Declaration& declaration);

/// The same for every registered trainer, for main to report as it does double registrations; also
/// what is wrong with a trainer's or class's description itself.
std::vector<std::string> ambiguous_registrations();

}  // namespace phalanx
