// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace phalanx {

struct Checkpoint;
struct Flag;
struct Invocation;

/// A form in which `checkpoint export` writes a model for other programs. Another one is a file
/// that defines its `write`, and its entry in the table of export_formats.cc: parsing, help and
/// completion go by that.
struct ExportFormat {
  using Write = std::string(const Checkpoint& checkpoint, const Invocation& invocation);

  std::string_view name;     ///< As --format takes it: "hf".
  std::string_view meaning;  ///< A few words, for help.
  /// Writes the checkpoint's model to the invocation's DESTINATION, in the precision that its flags
  /// ask for. Returns what was written, and where to: "28 tensors, 57.3 kB in 1 file written to
  /// /models/a". Throws UserError for a model that the form cannot hold, before it writes anything.
  Write* write;
};

/// All of them; the first is meant where none is named.
std::span<const ExportFormat> export_formats();

/// The flag --format, which picks one of them.
Flag format_flag();

/// The one that an invocation names by --format.
const ExportFormat& export_format(const Invocation& invocation);

}  // namespace phalanx
