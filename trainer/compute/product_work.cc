// SPDX-License-Identifier: Apache-2.0
#include "trainer/compute/product_work.h"

#include <ATen/ops/mm.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

namespace phalanx::compute {
namespace {

constexpr int64_t kSamples = 128;
constexpr int64_t kMaxSize = 1024;
constexpr size_t kMaxShapes = 6;
constexpr int64_t kChecked = 8;  // results of each product that are compared

// A model without matrices still has products in its loss or its attention.
constexpr WeightShape kAnyModel{.out = 512, .in = 512};

using Counted = std::pair<std::pair<int64_t, int64_t>, double>;

// Those shapes that most of the time goes into.
std::vector<Counted> heaviest_shapes(std::span<const WeightShape> weights) {
  std::map<std::pair<int64_t, int64_t>, double> counts;
  for (const auto& [out, in] : weights) {
    const auto limited = std::pair(std::min(out, kMaxSize), std::min(in, kMaxSize));
    // A larger one counts as so many of the limited size.
    counts[limited] += static_cast<double>(out) * static_cast<double>(in) /
                       (static_cast<double>(limited.first) * static_cast<double>(limited.second));
  }
  if (counts.empty()) counts[{kAnyModel.out, kAnyModel.in}] = 1;
  std::vector<Counted> shapes(counts.begin(), counts.end());
  const auto work = [](const Counted& shape) {
    return shape.second * static_cast<double>(shape.first.first * shape.first.second);
  };
  std::sort(shapes.begin(), shapes.end(),
            [&](const Counted& a, const Counted& b) { return work(a) > work(b); });
  if (shapes.size() > kMaxShapes) shapes.resize(kMaxShapes);
  return shapes;
}

at::Tensor random_matrix(int64_t rows, int64_t columns) {
  return tensors::empty({rows, columns}).uniform_(-1, 1);
}

// CPU time of this thread alone: other work on the machine does not count.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// |fl(sum) - sum| <= k eps sum |a b|: Higham, Accuracy and Stability of Numerical Algorithms, 3.1.
bool is_near(double result, const at::Tensor& row, const at::Tensor& column) {
  const at::Tensor terms = row.to(at::kDouble).mul(column.to(at::kDouble));
  const double bound = static_cast<double>(terms.numel()) *
                       static_cast<double>(std::numeric_limits<float>::epsilon()) *
                       terms.abs().sum().item<double>();
  return std::abs(result - terms.sum().item<double>()) <= bound;
}

bool is_product(const at::Tensor& product, const at::Tensor& a, const at::Tensor& b) {
  for (int64_t i = 0; i < kChecked; ++i) {
    // Spread over rows and columns, the last ones among them: edges have kernels of their own.
    const int64_t row = (product.size(0) - 1) * i / (kChecked - 1);
    const int64_t column = (product.size(1) - 1) * ((i * 3) % kChecked) / (kChecked - 1);
    if (!is_near(product[row][column].item<double>(), a[row], b.select(1, column))) return false;
  }
  return true;
}

}  // namespace

ProductWork::ProductWork(std::span<const WeightShape> weights) {
  for (const auto& [shape, count] : heaviest_shapes(weights)) {
    layers_.push_back({.count = count,
                       .input = random_matrix(kSamples, shape.second),
                       .weight = random_matrix(shape.first, shape.second),
                       .gradient = random_matrix(kSamples, shape.first)});
  }
}

double ProductWork::run() const {
  double seconds = 0;
  for (const Layer& layer : layers_) {
    const double begin = cpu_seconds();
    at::mm(layer.input, layer.weight.t());
    at::mm(layer.gradient, layer.weight);
    at::mm(layer.gradient.t(), layer.input);
    seconds += layer.count * (cpu_seconds() - begin);
  }
  return seconds;
}

bool ProductWork::is_correct() const {
  return std::all_of(layers_.begin(), layers_.end(), [](const Layer& layer) {
    const at::Tensor transposed = layer.weight.t();
    const at::Tensor samples = layer.gradient.t();
    return is_product(at::mm(layer.input, transposed), layer.input, transposed) &&
           is_product(at::mm(layer.gradient, layer.weight), layer.gradient, layer.weight) &&
           is_product(at::mm(samples, layer.input), samples, layer.input);
  });
}

}  // namespace phalanx::compute
