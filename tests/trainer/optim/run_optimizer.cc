// SPDX-License-Identifier: Apache-2.0
// run_optimizer DTYPE STEPS SHAPES (NAME YAML)...: standard input holds, as raw numbers, the
// parameters (of the comma-separated SHAPES: 17, or 3x5 for a matrix; in DTYPE float or double) and
// then for every step its learning rate (double), for each parameter whether it has a gradient (one
// byte), and the gradients. Runs each optimizer on them and writes the parameters after every step.
// The first parameter and all matrices are in the group that decays, the others are not.
#include <ATen/core/Tensor.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/registered.h"
#include "trainer/api/optimizer.h"
#include "trainer/tensors/tensors.h"

namespace {

struct Step {
  double lr = 0;
  std::vector<char> has_gradient;
  std::vector<at::Tensor> gradients;
};

void read(void* data, size_t bytes) {
  if (std::fread(data, 1, bytes, stdin) != bytes) throw std::runtime_error("the input ends early");
}

using Shape = std::vector<int64_t>;

std::vector<at::Tensor> read_tensors(const std::vector<Shape>& shapes, at::ScalarType dtype) {
  std::vector<at::Tensor> tensors;
  for (const Shape& shape : shapes) {
    tensors.push_back(phalanx::tensors::empty(shape, dtype));
    read(tensors.back().mutable_data_ptr(), tensors.back().nbytes());
  }
  return tensors;
}

std::vector<Shape> parse_shapes(const char* text) {
  std::vector<Shape> shapes;
  std::istringstream stream(text);
  for (std::string shape; std::getline(stream, shape, ',');) {
    shapes.emplace_back();
    std::istringstream sizes(shape);
    for (std::string size; std::getline(sizes, size, 'x');) {
      shapes.back().push_back(std::stoll(size));
    }
  }
  return shapes;
}

void run(phalanx::Optimizer& optimizer, const std::vector<at::Tensor>& start,
         const std::vector<Step>& steps) {
  std::vector<at::Tensor> weights;
  phalanx::ParameterGroup decay{.label = "decay", .weight_decay = true, .parameters = {}};
  phalanx::ParameterGroup no_decay{.label = "no decay", .weight_decay = false, .parameters = {}};
  for (const auto& values : start) {
    auto& group = weights.empty() || values.dim() == 2 ? decay : no_decay;
    weights.push_back(values.clone().requires_grad_());
    group.parameters.push_back({"w" + std::to_string(weights.size()), weights.back()});
  }
  optimizer.bind({decay, no_decay});
  for (const auto& step : steps) {
    for (size_t i = 0; i < weights.size(); ++i) {
      weights[i].mutable_grad() = step.has_gradient[i] ? step.gradients[i] : at::Tensor();
    }
    optimizer.step(step.lr);
    for (const auto& w : weights) std::fwrite(w.const_data_ptr(), 1, w.nbytes(), stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  const auto dtype = std::string(argv[1]) == "double" ? at::kDouble : at::kFloat;
  std::vector<Step> steps(std::stoul(argv[2]));
  const auto shapes = parse_shapes(argv[3]);
  const auto start = read_tensors(shapes, dtype);
  for (auto& step : steps) {
    read(&step.lr, sizeof(step.lr));
    step.has_gradient.resize(shapes.size());
    read(step.has_gradient.data(), step.has_gradient.size());
    step.gradients = read_tensors(shapes, dtype);
  }
  for (int i = 4; i + 1 < argc; i += 2) {
    run(*phalanx::make_registered<phalanx::Optimizer>(argv[i], argv[i + 1]), start, steps);
  }
}
