// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/ranks/ranks.h"

namespace phalanx {

/// How the ranks of a world are arranged: named dimensions whose sizes multiply to the world size
/// (torch.distributed.device_mesh.DeviceMesh). Consecutive ranks are neighbours along the last
/// dimension: of ("data", 2), ("tensor", 4), ranks 0 to 3 have the same place in "data".
class Mesh {
 public:
  struct Dimension {
    std::string name;
    int64_t size = 1;
  };

  /// The dimension along which samples are dealt and gradients averaged.
  static constexpr std::string_view kData = "data";

  /// Throws std::invalid_argument without a dimension, for a size below 1, and for a name that is
  /// empty or given twice.
  explicit Mesh(std::vector<Dimension> dimensions);

  std::span<const Dimension> dimensions() const { return dimensions_; }
  int64_t world_size() const;

  /// The size of a dimension. Throws std::invalid_argument for a name that the mesh does not have,
  /// as the following do.
  int64_t size(std::string_view dimension) const;
  /// The place of a rank along a dimension, from 0 to its size - 1.
  int64_t coordinate(std::string_view dimension, int64_t rank) const;
  /// The ranks whose places differ from that of `rank` along this dimension alone, in the order of
  /// their places; `rank` is one of them.
  std::vector<int64_t> ranks_along(std::string_view dimension, int64_t rank) const;

 private:
  const Dimension& at(std::string_view dimension) const;
  // How far apart neighbours along a dimension are.
  int64_t stride(std::string_view dimension) const;

  std::vector<Dimension> dimensions_;
};

/// The group of ranks_along of this rank, whose rank there is its coordinate
/// (DeviceMesh.get_group). All ranks of the world call it, with the same mesh and dimension. Throws
/// std::invalid_argument for a mesh of another size than the world and for an unknown dimension.
Ranks ranks_along(const Ranks& world, const Mesh& mesh, std::string_view dimension);

}  // namespace phalanx
