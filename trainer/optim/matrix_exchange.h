// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/api/optimizer.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

/// Makes matrices whole whose ranks hold flat parts or copies of them: each is dealt to one rank,
/// which gets the others' parts, computes with the whole, and sends each rank its part back.
class MatrixExchange {
 public:
  /// What is done with a whole matrix [rows, columns], of the list's `i`-th parameter; it may be
  /// overwritten.
  using Compute = std::function<at::Tensor(std::size_t i, const at::Tensor& whole)>;

  /// Exchanges no matrices.
  MatrixExchange() = default;
  /// All ranks call it with the same matrices, each with its own parts. A rank sends at most
  /// `elements_at_a_time` of computed wholes at a time, or those of one matrix. Throws
  /// std::logic_error where the parts do not make up a matrix.
  MatrixExchange(Ranks ranks, const std::vector<NamedParameter>& matrices,
                 int64_t elements_at_a_time = int64_t{1} << 27);

  /// `parts` hold this rank's elements of the matrices at ascending `positions` of the list, in one
  /// dtype; each becomes the same part of what `compute` makes of the whole. All ranks call it with
  /// the same positions.
  void run(const std::vector<std::size_t>& positions, std::vector<at::Tensor>& parts,
           const Compute& compute) const;

 private:
  struct Piece {
    int64_t begin = 0;
    int64_t end = 0;
    int64_t size() const { return end - begin; }
    bool operator==(const Piece&) const = default;
  };

  struct Matrix {
    int64_t rows = 0;
    int64_t columns = 0;
    std::vector<Piece> held;  ///< By rank.
    int64_t owner = 0;        ///< Who computes with the whole.
    int64_t sent_back = 0;    ///< Elements of all pieces.
    /// Whether a rank sends its piece to the owner: one of those that hold it.
    std::vector<bool> sends;
  };

  /// Places in the list of positions.
  using Places = std::vector<std::size_t>;

  void require_wholes(const std::vector<NamedParameter>& matrices) const;
  void deal();
  // Which of them are exchanged together, in this order: of each owner the next that it has room
  // for, so that all owners compute at once.
  std::vector<Places> rounds(const std::vector<std::size_t>& positions) const;
  void run_alone(const std::vector<std::size_t>& positions, std::vector<at::Tensor>& parts,
                 const Compute& compute) const;
  void run_round(const std::vector<std::size_t>& positions, std::vector<at::Tensor>& parts,
                 const Places& round, const Compute& compute) const;

  Ranks ranks_;
  int64_t elements_at_a_time_ = 0;
  std::vector<Matrix> matrices_;
};

}  // namespace phalanx
