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

  /// One rank, which holds all.
  MatrixExchange() = default;
  /// All ranks call it with the same matrices, each with its own parts. Throws std::logic_error
  /// where the parts do not make up a matrix.
  MatrixExchange(Ranks ranks, const std::vector<NamedParameter>& matrices);

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
    /// Whether a rank sends its piece to the owner: one of those that hold it.
    std::vector<bool> sends;
  };

  void deal();
  void run_some(const std::vector<std::size_t>& positions, std::vector<at::Tensor>& parts,
                std::size_t first, std::size_t last, const Compute& compute) const;

  Ranks ranks_;
  std::vector<Matrix> matrices_;
};

}  // namespace phalanx
