// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/data/fuzz/use.h"

#include <fcntl.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "tests/fuzz/promise.h"
#include "trainer/base/user_error.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/data/token_source.h"
#include "trainer/io/file.h"
#include "trainer/registry/registry.h"

namespace phalanx::fuzzing {
namespace {

constexpr int64_t kTokensAtATime = 100;

std::shared_ptr<const TokenSet> open(std::string_view name, const std::string& yaml) {
  const auto& entry = Registry<TokenSource>::instance().at(name);
  config::Diagnostics diagnostics;
  config::Node section = config::parse_yaml(yaml, "input", diagnostics);
  section = config::resolve(*entry.declaration(), std::move(section), diagnostics);
  diagnostics.throw_if_any();
  return entry.make(section)->open("source");
}

void read_tokens(const TokenSet& set) {
  std::vector<int64_t> tokens(kTokensAtATime);
  for (int64_t place = 0; place < set.size(); place += kTokensAtATime) {
    const int64_t count = std::min(kTokensAtATime, set.size() - place);
    set.read(place, std::span(tokens).first(static_cast<std::size_t>(count)));
    require(!set.place_of(place).empty() && !set.file_of(place).empty(), "a token has a place");
  }
}

void read_documents(const TokenSet& set) {
  const std::vector<DocumentBegin> all = set.document_begins(0, set.size());
  int64_t last = -1;
  for (const DocumentBegin& document : all) {
    require(document.place > last, "documents ascend");
    last = document.place;
  }
  require(last < set.size() || all.empty(), "documents begin inside");
  std::vector<DocumentBegin> parts;
  for (int64_t place = 0; place < set.size(); place += kTokensAtATime) {
    const int64_t end = std::min(place + kTokensAtATime, set.size());
    for (const DocumentBegin& document : set.document_begins(place, end)) {
      parts.push_back(document);
    }
  }
  require(parts == all, "parts of a set have the documents of the whole");
}

}  // namespace

std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

void write_bytes(const std::filesystem::path& path, std::string_view bytes) {
  File(path, O_WRONLY | O_CREAT | O_TRUNC).write(bytes);
}

void use_source(std::string_view name, const std::string& yaml) {
  try {
    const auto set = open(name, yaml);
    require(set->size() >= 0, "a set has a size");
    read_tokens(*set);
    read_documents(*set);
  } catch (const UserError& error) {
    require(*error.what() != '\0', "an error says what is wrong");
  }
}

}  // namespace phalanx::fuzzing
