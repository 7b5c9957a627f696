// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

namespace phalanx {

/// What is wrong with a JSON text, for a message: what an error of the JSON library says, without
/// the library's own names, and with line and column first ("line 1, column 5: syntax error ...");
/// of a value of another kind, which kind it must be ("it must be an object, but is number").
/// Any other error's text stays as it is.
std::string json_cause(const std::exception& error);

}  // namespace phalanx
