// SPDX-License-Identifier: Apache-2.0
// Writes texts for benchmarks/generation: `generation_probe CONFIG PROMPT NEW GEMM` makes the model
// that a config.json of Hugging Face's describes, with random weights, and computes products with
// GEMM. For each line on standard input it goes on greedily from PROMPT tokens by NEW tokens, and
// prints the seconds that took. One thread.

#include <ATen/Parallel.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "models/interfaces/causal_language_model.h"
#include "trainer/api/model_base.h"
#include "trainer/api/parameters.h"
#include "trainer/compute/gemm.h"
#include "trainer/config/syntax/parse_json.h"
#include "trainer/config/tree/schema.h"
#include "trainer/generation/generate.h"
#include "trainer/hugging_face/model_section.h"
#include "trainer/io/file.h"
#include "trainer/memory/memory.h"
#include "trainer/registry/hugging_face.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

std::shared_ptr<ModelBase> make(const std::string& path) {
  const config::Node theirs = config::parse_json(read_text(path), path);
  const std::string name = model_of_type(theirs.find("model_type")->text);
  config::Node section =
      section_of_hugging_face(hugging_face_model(name), theirs, /*tensors=*/1000);
  section.set("name", config::Node::string(name));
  config::Node fields = resolved_model(std::move(section));
  std::erase_if(fields.entries, [](const auto& entry) { return entry.key == "name"; });
  auto model = Registry<ModelBase>::instance().at(name).make(fields);
  set_training(*model, false);
  return model;
}

void run(const std::vector<std::string>& arguments) {
  at::set_num_threads(1);
  compute::use(compute::gemm_named(arguments.at(3)).value());
  use_caching_allocator();
  const auto model = make(arguments.at(0));
  auto& causal = *model->as<CausalLanguageModel>();
  GenerationInput input;
  for (int32_t i = 0; i < std::stoi(arguments.at(1)); ++i) input.tokens.push_back(1 + i % 60);
  GenerationConfig config;
  config.max_new_tokens = std::stoll(arguments.at(2));
  for (std::string line; std::getline(std::cin, line);) {
    const auto begin = std::chrono::steady_clock::now();
    generate(causal, std::vector{input}, {.vocabulary_size = causal.vocabulary_size()}, config);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    std::cout << seconds.count() << std::endl;
  }
}

}  // namespace
}  // namespace phalanx

int main(int argc, char** argv) try {
  phalanx::run({argv + 1, argv + argc});
} catch (const std::exception& error) {
  std::cerr << "generation_probe: " << error.what() << "\n";
  return 1;
}
