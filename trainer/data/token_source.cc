// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/token_source.h"

#include <fmt/format.h>

#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/config/tree/node.h"
#include "trainer/config/tree/scalar.h"

namespace phalanx {
namespace {

constexpr const char* kFiles = "files";

}  // namespace

std::optional<int64_t> end_of_text_of(const config::Chosen& source) {
  const config::Node* end = source.section().find("end_of_text");
  const bool is_named = end != nullptr && end->is_scalar();
  return is_named ? config::parse_integer(end->text).value : std::nullopt;
}

config::Chosen with_files(const config::Chosen& source,
                          const std::vector<std::filesystem::path>& files) {
  config::Node section = source.section();
  if (!section.is_map() || section.find(kFiles) == nullptr) {
    throw UserError(
        fmt::format("the source '{}' of the config names no files, so none can stand in their "
                    "place: set task.data.validation_source",
                    source.name()));
  }
  std::vector<config::Node> paths;
  for (const auto& file : files) paths.push_back(config::Node::string(file.string()));
  section.set(kFiles, config::Node::list(std::move(paths)));
  return config::Chosen(std::move(section));
}

}  // namespace phalanx
