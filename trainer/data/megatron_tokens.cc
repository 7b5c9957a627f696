// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/megatron_tokens.h"

#include <fmt/format.h>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

fs::path with_suffix(fs::path prefix, const char* suffix) { return prefix += suffix; }

StoredTokens open_tokens(const std::string& field, const fs::path& path,
                         const MegatronIndex& index) {
  DataFile file(field, path);
  const int64_t bytes = index.tokens() * bytes_of(index.type());
  if (static_cast<int64_t>(file.size()) != bytes) {
    throw UserError(
        fmt::format("{}: '{}' has {} bytes, but its index ends at byte {}: the two are "
                    "not of one set, or one is cut off: get both again",
                    field, path.string(), file.size(), bytes));
  }
  return {file, 0, index.tokens(), index.type()};
}

}  // namespace

MegatronTokens::MegatronTokens(const std::string& field, const fs::path& prefix)
    : index_(field, with_suffix(prefix, ".idx")),
      tokens_(open_tokens(field, with_suffix(prefix, ".bin"), index_)) {}

std::vector<DocumentBegin> MegatronTokens::document_begins(int64_t begin, int64_t end) const {
  const MegatronIndex::Documents documents = index_.places();
  // The first document at or behind `begin`.
  int64_t low = 0;
  int64_t high = index_.documents();
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (documents.begin_of(middle) < begin) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  std::vector<DocumentBegin> begins;
  for (; low < index_.documents() && documents.begin_of(low) < end; ++low) {
    const int64_t place = documents.begin_of(low);
    const bool is_empty = !begins.empty() && begins.back().place == place;  // the one before it
    if (!is_empty) begins.push_back({.place = place});
  }
  return begins;
}

}  // namespace phalanx
