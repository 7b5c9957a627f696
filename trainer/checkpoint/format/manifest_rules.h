// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "trainer/checkpoint/format/contents.h"

namespace phalanx {

struct Manifest;

/// Bytes: an attachment is read at once.
inline constexpr uint64_t kLargestAttachment = 100'000'000;

/// Elements of a tensor. Throws CheckpointError for a shape that is none, or whose elements are
/// more than memory could ever hold.
int64_t elements_of(const ManifestTensor& tensor);

/// Bytes of a slice. The manifest is sound.
uint64_t bytes_in(const ManifestTensor& tensor, const ManifestSlice& slice);

/// A name that stays in its folder, whatever it is joined to.
bool is_plain_file_name(std::string_view name);

/// Throws CheckpointError, naming tensor or file, unless everything that a manifest says fits
/// together, so that a reader can trust it whoever wrote it: files lie in the checkpoint's folder;
/// names are unique; boxes lie in their tensors; slices cover each tensor, and heads and slices
/// each file, without gap or overlap; there are as many checksums as chunks. Sizes on disk are not
/// looked at.
void require_sound(const Manifest& manifest);

}  // namespace phalanx
