// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/remote_embedding/loss_lines.h"

#include <fmt/format.h>

#include <sstream>
#include <stdexcept>
#include <utility>

#include "trainer/tensors/tensors.h"

namespace phalanx::remote_embedding {

std::string lines_of(const Loss& loss) {
  std::string lines;
  for (const auto& [name, value] : loss.parts()) {
    lines += fmt::format("{} {}\n", static_cast<int>(value.scalar_type()), name);
  }
  return lines;
}

Loss::Parts zeros_of(const std::string& lines) {
  Loss::Parts parts;
  std::istringstream text(lines);
  for (int dtype = 0; text >> dtype;) {
    text.get();
    std::string name;
    std::getline(text, name);
    const auto type = static_cast<at::ScalarType>(dtype);
    if (!at::isFloatingType(type)) {
      throw std::invalid_argument(fmt::format("'{}' is no loss: it has type {}", name, dtype));
    }
    parts.emplace_back(std::move(name), tensors::zeros({}, at::TensorOptions().dtype(type)));
  }
  if (parts.empty()) throw std::invalid_argument("a loss without a part");
  return parts;
}

}  // namespace phalanx::remote_embedding
