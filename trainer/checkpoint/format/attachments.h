// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>

#include "trainer/api/attachments.h"
#include "trainer/checkpoint/format/contents.h"

namespace phalanx {

struct Checkpoint;

/// Throws UserError, naming the file, for names or sizes that a checkpoint and its export cannot
/// carry: a name with a folder, a name used twice, or one that a checkpoint's own files have.
void require_attachable(std::span<const Attachment> attachments);

/// Writes and fsyncs them into the folder of a checkpoint in the making. Returns what its manifest
/// says of each. Throws IoError.
std::map<std::string, ManifestFile> write_attachments(const std::filesystem::path& checkpoint,
                                                      std::span<const Attachment> attachments);

/// Compares size and checksum of each. Throws CheckpointError or IoError.
void require_attachments(const Checkpoint& checkpoint);

/// What a checkpoint carries, compared with its checksums. Throws CheckpointError that names the
/// file and says what to do.
Attachments read_attachments(const Checkpoint& checkpoint);

/// Throws UserError, naming the files that differ, unless a run has the files that the checkpoint
/// carries, apart from those of the names `not_needed`; one that carries none says nothing. No file
/// is read.
void require_same_attachments(const Checkpoint& checkpoint, std::span<const Attachment> attachments,
                              const std::set<std::string>& not_needed = {});

}  // namespace phalanx
