// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "trainer/base/joined.h"

namespace phalanx {

Mesh::Mesh(std::vector<Dimension> dimensions) : dimensions_(std::move(dimensions)) {
  if (dimensions_.empty()) throw std::invalid_argument("a mesh has one dimension or more");
  for (auto dimension = dimensions_.begin(); dimension != dimensions_.end(); ++dimension) {
    if (dimension->name.empty()) {
      throw std::invalid_argument("each dimension of a mesh has a name");
    }
    if (dimension->size < 1) {
      throw std::invalid_argument(
          fmt::format("dimension '{}' of a mesh has the size {}: give 1 or "
                      "more",
                      dimension->name, dimension->size));
    }
    if (std::ranges::find(dimensions_.begin(), dimension, dimension->name, &Dimension::name) !=
        dimension) {
      throw std::invalid_argument(
          fmt::format("dimension '{}' of a mesh is given twice", dimension->name));
    }
  }
}

int64_t Mesh::world_size() const {
  int64_t size = 1;
  for (const Dimension& dimension : dimensions_) size *= dimension.size;
  return size;
}

int64_t Mesh::size(std::string_view dimension) const { return at(dimension).size; }

int64_t Mesh::coordinate(std::string_view dimension, int64_t rank) const {
  return rank / stride(dimension) % size(dimension);
}

std::vector<int64_t> Mesh::ranks_along(std::string_view dimension, int64_t rank) const {
  const int64_t apart = stride(dimension);
  const int64_t first = rank - coordinate(dimension, rank) * apart;
  std::vector<int64_t> ranks;
  for (int64_t place = 0; place < size(dimension); ++place) ranks.push_back(first + place * apart);
  return ranks;
}

const Mesh::Dimension& Mesh::at(std::string_view dimension) const {
  const auto found = std::ranges::find(dimensions_, dimension, &Dimension::name);
  if (found != dimensions_.end()) return *found;
  const auto name_of = [](const Dimension& known) -> const std::string& { return known.name; };
  throw std::invalid_argument(fmt::format("the mesh has no dimension '{}'; it has: {}", dimension,
                                          joined(dimensions_, ", ", name_of)));
}

int64_t Mesh::stride(std::string_view dimension) const {
  int64_t apart = 1;
  for (const Dimension* behind = &at(dimension) + 1; behind != &dimensions_.back() + 1; ++behind) {
    apart *= behind->size;
  }
  return apart;
}

Ranks ranks_along(const Ranks& world, const Mesh& mesh, std::string_view dimension) {
  if (mesh.world_size() != world.world_size()) {
    throw std::invalid_argument(fmt::format("a mesh of {} ranks does not fit a world of {}",
                                            mesh.world_size(), world.world_size()));
  }
  const int64_t size = mesh.size(dimension);
  if (size == world.world_size()) return world;
  if (size == 1) return Ranks();
  // Every rank makes every group, in one order.
  Ranks own;
  for (int64_t rank = 0; rank < world.world_size(); ++rank) {
    if (mesh.coordinate(dimension, rank) != 0) continue;
    if (auto group = world.subgroup(mesh.ranks_along(dimension, rank))) own = std::move(*group);
  }
  return own;
}

}  // namespace phalanx
