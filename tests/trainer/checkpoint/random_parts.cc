// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/checkpoint/random_parts.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "tests/tensors.h"

namespace phalanx {
namespace {

/// From 0 to `most`.
int64_t up_to(std::mt19937& random, int64_t most) {
  return static_cast<int64_t>(random() % static_cast<std::uint64_t>(most + 1));
}

bool coin(std::mt19937& random) { return random() % 2 == 0; }

}  // namespace

at::Tensor KnownTensor::values() const {
  const int64_t elements =
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  const int64_t different = dtype == at::kBool ? 2 : dtype == at::kByte ? 251 : int64_t{1} << 30;
  return tensors::arange(elements, at::kLong).remainder(different).to(dtype).view(shape);
}

at::Tensor KnownTensor::values(const TensorPart& part) const {
  at::Tensor box = values();
  if (part.box) {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      box = box.narrow(static_cast<int64_t>(i), part.box->offsets[i], part.box->sizes[i]);
    }
  }
  return box.reshape(-1).narrow(0, part.begin, part.end - part.begin).clone();
}

KnownTensor random_tensor(std::mt19937& random, std::string name) {
  static const std::vector<at::ScalarType> kTypes{at::kFloat, at::kDouble, at::kByte, at::kBool};
  KnownTensor tensor{.name = std::move(name), .shape = {}};
  tensor.dtype = kTypes[random() % kTypes.size()];
  const int64_t most = random() % 4 == 0 ? 60 : 9;
  for (int64_t i = up_to(random, 3); i > 0; --i) tensor.shape.push_back(up_to(random, most));
  return tensor;
}

std::vector<TensorPart> random_cover(std::mt19937& random, const std::vector<int64_t>& shape,
                                     int64_t most) {
  TensorPart all{.box = whole_box(shape)};
  all.end = all.box->elements();
  std::vector<TensorPart> parts{all};
  while (std::ssize(parts) < most && random() % 8 != 0) {
    TensorPart& cut = parts[random() % parts.size()];
    TensorPart rest = cut;
    if (!shape.empty() && cut.begin == 0 && cut.end == cut.box->elements() && coin(random)) {
      const std::size_t dimension = random() % shape.size();
      const int64_t first = up_to(random, cut.box->sizes[dimension]);
      cut.box->sizes[dimension] = first;
      rest.box->offsets[dimension] += first;
      rest.box->sizes[dimension] -= first;
      cut.end = cut.box->elements();
      rest.end = rest.box->elements();
    } else {
      cut.end = cut.begin + up_to(random, cut.end - cut.begin);
      rest.begin = cut.end;
    }
    parts.push_back(rest);
  }
  for (TensorPart& part : parts) {
    if (*part.box == whole_box(shape) && coin(random)) part.box.reset();
  }
  return parts;
}

TensorPart random_part(std::mt19937& random, const std::vector<int64_t>& shape) {
  TensorPart part{.box = whole_box(shape)};
  for (std::size_t i = 0; i < shape.size(); ++i) {
    part.box->offsets[i] = up_to(random, shape[i]);
    part.box->sizes[i] = up_to(random, shape[i] - part.box->offsets[i]);
  }
  if (coin(random)) part.box.reset();
  const int64_t elements = part.in(shape).box.elements();
  part.begin = coin(random) ? 0 : up_to(random, elements);
  part.end = coin(random) ? elements : part.begin + up_to(random, elements - part.begin);
  return part;
}

ShardedTensorView random_view(std::mt19937& random, const KnownTensor& tensor,
                              const TensorPart& part) {
  const BoxRange held = part.in(tensor.shape);
  at::Tensor local = tensor.values(part);
  if (local.numel() == held.box.elements() && coin(random)) {
    local = local.view(held.box.sizes);
    if (local.dim() > 1 && coin(random)) {
      local = local.transpose(0, -1).contiguous().transpose(0, -1);
    }
  }
  return {.name = tensor.name,
          .shape = tensor.shape,
          .dtype = tensor.dtype,
          .box = part.box,
          .begin = part.begin,
          .end = part.end,
          .local = local};
}

ShardedTensorView random_share(std::mt19937& random, const KnownTensor& tensor, int64_t rank,
                               int64_t ranks) {
  const std::vector<TensorPart> parts = random_cover(random, tensor.shape, ranks);
  std::vector<int64_t> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::shuffle(order.begin(), order.end(), random);
  // The first ranks hold a part each; the others the same as one of them, or nothing.
  std::vector<std::vector<int64_t>> holders(parts.size());
  std::vector<std::size_t> held_by(order.size(), parts.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t part = i < parts.size() ? i : random() % (parts.size() + 1);
    held_by[static_cast<std::size_t>(order[i])] = part;
    if (part < parts.size()) holders[part].push_back(order[i]);
  }
  const std::size_t mine = held_by[static_cast<std::size_t>(rank)];
  // What is drawn here is this rank's alone, so it comes from other numbers.
  std::mt19937 own(static_cast<unsigned>(random()) + static_cast<unsigned>(rank));
  ShardedTensorView view = mine < parts.size() ? random_view(own, tensor, parts[mine])
                                               : random_view(own, tensor, TensorPart{});
  view.replicas = holders[mine < parts.size() ? mine : 0];
  return view;
}

}  // namespace phalanx
