// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <vector>

#include "trainer/checkpoint/save/write_plan.h"
#include "trainer/io/byte_progress.h"
#include "trainer/io/file.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

/// The values of WritePlan::pieces[piece] on the rank that is its source: contiguous, in host
/// memory. Of a share, those of its boxes, packed.
using PieceValues = std::function<at::Tensor(std::size_t piece)>;

/// Carries out one rank's part of a plan in a folder that all ranks see.
class PieceWriter {
 public:
  /// `progress`, where given, counts what this rank writes.
  PieceWriter(const WritePlan& plan, std::filesystem::path folder, Ranks ranks,
              ByteProgress* progress = nullptr);

  /// Creates the files whose maker this rank is, with room for all that they will hold. The others
  /// of its host write when that is done. Throws IoError.
  void make_files();

  /// Writes, fsyncs, and returns the checksums of the chunks that this rank wrote, in the plan's
  /// order. Where something fails, it still sends and receives all that others wait for, and throws
  /// IoError then; or CommunicationError.
  std::vector<uint64_t> write(const PieceValues& values);

 private:
  /// What the disk has been told to write.
  struct Started {
    File* file = nullptr;
    uint64_t offset = 0;
    uint64_t size = 0;
  };

  void put(const PlannedPiece& piece, const at::Tensor& values);
  void write_piece(const PlannedPiece& piece, const at::Tensor& values);
  void keep_disk_busy(File& file, uint64_t offset, uint64_t size);
  at::Tensor room_for(const PlannedPiece& piece) const;
  File& file_of(const PlannedPiece& piece);

  const WritePlan& plan_;
  std::filesystem::path folder_;
  Ranks ranks_;
  std::map<int64_t, File> files_;  ///< That this rank writes into, by their index in the plan.
  std::vector<uint64_t> checksums_;
  at::Tensor together_;          ///< Of the piece whose shares come in; undefined: no such piece.
  std::deque<Started> started_;  ///< The oldest first.
  uint64_t started_bytes_ = 0;
  ByteProgress* progress_;
};

}  // namespace phalanx
