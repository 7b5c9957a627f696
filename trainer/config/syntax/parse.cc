// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/syntax/parse.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "trainer/config/syntax/document.h"
#include "trainer/config/syntax/source_text.h"

namespace phalanx::config {

namespace {

[[noreturn]] void refuse_file(const std::string& name, const std::string& message,
                              Diagnostics& diagnostics) {
  const auto source = std::make_shared<const Source>(Source{Source::Kind::file, name, ""});
  diagnostics.add({source, 0, 0}, "", message);
  diagnostics.throw_if_any();
  std::abort();
}

std::string read_text(const std::filesystem::path& path, Diagnostics& diagnostics) {
  const std::string name = path.string();
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    const bool missing = !error || error == std::errc::no_such_file_or_directory;
    refuse_file(name, missing ? "there is no such file" : "cannot be read: " + error.message(),
                diagnostics);
  }
  if (std::filesystem::is_directory(status)) {
    refuse_file(name, "this is a folder; name the config file in it", diagnostics);
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    refuse_file(name, std::string("cannot be read: ") + std::strerror(errno), diagnostics);
  }
  std::string text;
  std::array<char, 1 << 14> part;
  do {
    stream.read(part.data(), part.size());
    text.append(part.data(), static_cast<std::size_t>(stream.gcount()));
  } while (stream && text.size() <= kMaxConfigBytes);
  if (stream.bad()) refuse_file(name, "reading it failed", diagnostics);
  return text;
}

}  // namespace

Node read_file(const std::filesystem::path& path, Diagnostics& diagnostics) {
  return parse_yaml(read_text(path, diagnostics), path.string(), diagnostics);
}

Node parse_yaml(const std::string& text, std::string name, Diagnostics& diagnostics) {
  if (text.size() > kMaxConfigBytes) {
    refuse_file(name, "is larger than 1 MiB, too large for a config", diagnostics);
  }
  const auto source = std::make_shared<const Source>(
      Source{Source::Kind::file, std::move(name), normalized_lines(text)});
  if (const auto defect = find_text_defect(source->text)) {
    diagnostics.add(origin_at(source, defect->position), "", defect->message);
    diagnostics.throw_if_any();
  }
  const std::optional<Node> root = parse_document(source, source->text, diagnostics);
  if (!root) diagnostics.throw_if_any();
  if (!root || root->is_null()) {
    refuse_file(source->name, "the file is empty; a config is a map of fields, such as name: ...",
                diagnostics);
  }
  if (!root->is_map()) {
    diagnostics.add(root->origin, "",
                    "the top level is no map; a config is a map of fields, such as name: ...");
    diagnostics.throw_if_any();
  }
  return *root;
}

}  // namespace phalanx::config
