// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/replicas/data_parallel_module.h"

#include <fmt/format.h>

#include <stdexcept>

#include "trainer/api/modules.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {

std::vector<std::shared_ptr<torch::nn::Module>> clones(const torch::nn::Module& module,
                                                       size_t count) {
  std::vector<std::shared_ptr<torch::nn::Module>> all;
  try {
    for (size_t i = 0; i < count; ++i) all.push_back(module.clone());
  } catch (const c10::Error& error) {
    throw std::invalid_argument(
        fmt::format("DataParallel cannot clone the module {}: derive it and the modules in it from "
                    "torch::nn::Cloneable, or give a function that builds one more ({})",
                    modules::class_name(module), error_text(error)));
  }
  return all;
}

}  // namespace phalanx
