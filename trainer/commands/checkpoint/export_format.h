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
/// with a function that makes it, and its name in the table of export_formats.cc: parsing, help and
/// completion go by that.
///
/// Each keeps to this:
/// - Memory: a few pieces of the model at a time, whatever its size. ModelCopy (model_copy.h) does.
/// - Checksums: what is read is compared with them. ModelCopy and load_model do.
/// - Precision: asked_dtype (written_dtype.h) gives that of each tensor. A value that would become
///   infinite in it is an error.
/// - Attachments: exported_files (exported_files.h) gives the files that the checkpoint carries, as
///   a tokenizer's, with the token that ends a text. A form that has a place for them writes them.
/// - Progress: it is shown while bytes are copied: by copy_model (copy_model.h), or on standard
///   error by with_progress (progress_line.h).
/// - Atomicity: DESTINATION is made by NewFolder (new_folder.h): it is there whole or not at all,
///   and nothing that exists is written over.
struct ExportFormat {
  std::string_view name;     ///< As --format takes it: "hf".
  std::string_view meaning;  ///< A few words, for help.
  /// Writes the checkpoint's model to the invocation's DESTINATION, in the precision that its flags
  /// ask for. Returns what was written, and where to: "28 tensors, 57.3 kB in 1 file written to
  /// /models/a". Throws UserError for a model that the form cannot hold, before it writes anything.
  std::string (*write)(const Checkpoint& checkpoint, const Invocation& invocation);
};

/// All of them; the first is the default.
std::span<const ExportFormat> export_formats();

/// The flag --format, which picks one of them.
Flag format_flag();

/// The one that an invocation names by --format.
const ExportFormat& export_format(const Invocation& invocation);

}  // namespace phalanx
