#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <vector>

#include "trainer/checkpoint/write_plan.h"
#include "trainer/core/io/file.h"
#include "trainer/core/ranks.h"

namespace phalanx {

/// The values of WritePlan::pieces[piece] on the rank that is its source: contiguous, in host
/// memory.
using PieceValues = std::function<at::Tensor(std::size_t piece)>;

/// Carries out one rank's part of a plan in a folder that all ranks see.
class PieceWriter {
 public:
  PieceWriter(const WritePlan& plan, std::filesystem::path folder, Ranks ranks);

  /// Creates the files whose maker this rank is, with room for all that they will hold. The others
  /// of its host write when that is done. Throws IoError.
  void make_files();

  /// Writes, fsyncs, and returns the checksums of the chunks that this rank wrote, in the plan's
  /// order. Where something fails, it still sends and receives all that others wait for, and throws
  /// IoError then; or CommunicationError.
  std::vector<uint64_t> write(const PieceValues& values);

 private:
  void write_piece(const PlannedPiece& piece, const at::Tensor& values);
  at::Tensor room_for(const PlannedPiece& piece) const;
  File& file_of(const PlannedPiece& piece);

  const WritePlan& plan_;
  std::filesystem::path folder_;
  Ranks ranks_;
  std::map<int64_t, File> files_;  ///< That this rank writes into, by their index in the plan.
  std::vector<uint64_t> checksums_;
};

}  // namespace phalanx
