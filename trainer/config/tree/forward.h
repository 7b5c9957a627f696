// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::config {

// Names that a header needs where a struct only declares its `describe`; schema.h and node.h define
// them. What includes a header that includes this one is not compiled again when those change.
class Chosen;
class Declaration;
struct Node;
struct Type;
template <class T>
struct Binding;
template <class T>
class Schema;
template <class T>
const Declaration& declaration();
template <class T>
T read(const Node& resolved_section);
template <class T>
T read_defaults();

}  // namespace phalanx::config
