// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/pipeline/loss_form.h"

#include <fmt/format.h>

#include <sstream>
#include <stdexcept>
#include <utility>

#include "trainer/tensors/tensors.h"

namespace phalanx::pipeline {

LossForm::LossForm(const Loss& loss) {
  for (const auto& [name, value] : loss.parts()) {
    parts_.push_back({.name = name, .dtype = value.scalar_type()});
  }
}

// A line a part: the number of the dtype, which is the same in all ranks' program, and the name.
LossForm::LossForm(const std::string& text) {
  std::istringstream stream(text);
  for (int dtype = 0; stream >> dtype;) {
    Part part{.name = {}, .dtype = static_cast<at::ScalarType>(dtype)};
    stream.ignore();  // the blank
    std::getline(stream, part.name);
    parts_.push_back(std::move(part));
  }
  if (parts_.empty()) throw std::invalid_argument("the form of a loss without parts");
}

std::string LossForm::text() const {
  std::string text;
  for (const Part& part : parts_) {
    text += fmt::format("{} {}\n", static_cast<int>(part.dtype), part.name);
  }
  return text;
}

std::vector<at::Tensor> LossForm::zeros() const {
  std::vector<at::Tensor> values;
  for (const Part& part : parts_) {
    values.push_back(tensors::zeros({}, at::TensorOptions().dtype(part.dtype)));
  }
  return values;
}

Loss LossForm::with(const std::vector<at::Tensor>& values) const {
  Loss::Parts parts;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    parts.emplace_back(parts_[i].name, values.at(i));
  }
  return Loss(std::move(parts));
}

}  // namespace phalanx::pipeline
