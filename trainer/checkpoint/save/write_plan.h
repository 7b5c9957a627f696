// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/checkpoint/save/held_slices.h"

namespace phalanx {

/// How the tensors of a part stand in its files.
enum class Layout {
  /// Each in one piece, so that any reader of safetensors opens them: a model. Where ranks hold
  /// boxes, some rank puts each piece together.
  whole,
  /// In slices where no host has all of one, or ranks hold boxes: they need not leave their hosts.
  slices,
};

/// Tensors that are written into files of their own.
struct PlannedPart {
  std::string name;
  Layout layout = Layout::whole;
  std::vector<HeldTensor> tensors;
};

/// A safetensors file. The ranks of one host write it, each in its places: no page of a file is
/// ever written by two hosts, which network file systems do not promise to keep right.
struct PlannedFile {
  std::string name;
  int64_t part = 0;              ///< Index in WritePlan::parts.
  int64_t maker = 0;             ///< The rank that creates it and writes its head.
  std::string head;              ///< All before the first tensor.
  uint64_t size = 0;             ///< Bytes in all.
  std::vector<int64_t> tensors;  ///< That stand in it, wholly or in part: indices in the part.
};

/// What one rank writes at a time: a range of a flattened tensor, or of a box of it. Of one that is
/// put together, each rank's share is a piece: they follow each other, and differ in `source`.
struct PlannedPiece {
  int64_t part = 0;     ///< Index in WritePlan::parts.
  int64_t tensor = 0;   ///< Index in its tensors.
  int64_t begin = 0;    ///< First element.
  int64_t end = 0;      ///< One past the last.
  int64_t source = 0;   ///< The rank whose values are written.
  int64_t writer = 0;   ///< The rank that writes them: `source`, or one of the file's host.
  int64_t file = 0;     ///< Index in WritePlan::files.
  uint64_t offset = 0;  ///< The place of its first byte in the file.
  int64_t slice = 0;    ///< Whose values these are, or the share: index in HeldTensor::slices.
  bool is_put_together = false;  ///< Out of shares: [begin, end) is a range of the whole tensor.
  bool is_last_share = true;     ///< The piece is complete, and can be written.
};

/// Who writes what where: the same on all ranks.
struct WritePlan {
  std::vector<PlannedPart> parts;
  std::vector<PlannedFile> files;
  /// By part, tensor, slice and begin: all ranks go in this order.
  std::vector<PlannedPiece> pieces;
  uint64_t chunk_bytes = 0;  ///< Contents::chunk_bytes; divides pieces' sizes but the last.
};

/// Limits of a plan.
struct PlanLimits {
  uint64_t file_bytes = uint64_t{5} << 30;    ///< A file is longer only if one tensor is.
  uint64_t piece_bytes = uint64_t{16} << 20;  ///< A power of two, 64 KiB or more.
};

/// Divides the work among the ranks that hold the same, and balances bytes over ranks and hosts.
/// `host_of_rank`: 0, 1, …. Only what a whole tensor's host lacks of it goes from one to another.
WritePlan plan_writes(std::vector<PlannedPart> parts, std::span<const int64_t> host_of_rank,
                      const PlanLimits& limits = {});

/// The tensor of a piece.
const HeldTensor& tensor_of(const WritePlan& plan, const PlannedPiece& piece);

/// The boxes of a share of a piece that is put together, whose values are sent one after the other.
std::vector<TensorBox> share_of(const HeldTensor& tensor, const PlannedPiece& piece);

/// Elements of a piece, or of a share of one.
int64_t elements_of(const WritePlan& plan, const PlannedPiece& piece);

/// Bytes of tensors that a rank writes.
uint64_t bytes_written_by(const WritePlan& plan, int64_t rank);

}  // namespace phalanx
