// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/require_text.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/data/text/known_format.h"
#include "trainer/data/text/text_stream.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

constexpr size_t kFewest = 16;   // Bytes that are no text, in a short file.
constexpr size_t kShare = 10;    // One byte in so many.
constexpr size_t kFiles = 1000;  // That are looked at for their names, and for their places.

// Nothing where it cannot be read: who reads the file says so.
std::string begin_of(const std::filesystem::path& path, Packed packed) {
  std::string begin(kShowsText, '\0');
  try {
    if (packed == Packed::unpacked) {
      begin.resize(open_text(path)->read(begin));
    } else {
      const File file(path, O_RDONLY);
      begin.resize(std::min<uint64_t>(begin.size(), file.size()));
      file.read(std::as_writable_bytes(std::span(begin)), 0);
    }
  } catch (const std::exception&) {
    return {};
  }
  return begin;
}

// By number, in their order.
std::vector<size_t> looked_at(const FileList& files) {
  const size_t stride = (files.size() + kFiles - 1) / kFiles;
  std::vector<size_t> chosen;
  size_t by_name = 0;
  for (size_t file = 0; file < files.size(); ++file) {
    const bool is_named =
        stride > 1 && by_name < kFiles && has_name_of_known_format(files.name(file));
    if (is_named) ++by_name;
    if (is_named || file % stride == 0) chosen.push_back(file);
  }
  return chosen;
}

}  // namespace

std::optional<std::string> no_text_problem(std::string_view begin) {
  begin = begin.substr(0, kShowsText);
  if (const auto format = known_format(begin)) {
    return fmt::format("is {}, not text in UTF-8: {}", format->name, format->advice);
  }
  const size_t bytes = bytes_of_no_text(begin);
  if (bytes < kFewest || bytes * kShare <= begin.size()) return std::nullopt;
  return fmt::format(
      "is not text in UTF-8: {:.1f}% of its first {} bytes are none, and {}% may be: name the "
      "files "
      "with text, or make it UTF-8 if it is text in another encoding (iconv -f ENCODING -t UTF-8)",
      100.0 * static_cast<double>(bytes) / static_cast<double>(begin.size()), begin.size(),
      100 / kShare);
}

void require_text(const std::filesystem::path& file, std::string_view begin,
                  const AnyBytes& any_bytes) {
  if (any_bytes.are_allowed) return;
  const auto problem = no_text_problem(begin);
  if (!problem) return;
  const std::string& by = any_bytes.allowed_by;
  throw UserError(
      fmt::format("'{}' {}{}", file.string(), *problem,
                  by.empty() ? "" : fmt::format("; {} reads any bytes as they are", by)));
}

void require_texts(const FileList& files, Packed packed, const AnyBytes& any_bytes) {
  if (any_bytes.are_allowed) return;
  for (const size_t file : looked_at(files)) {
    require_text(files[file], begin_of(files[file], packed), any_bytes);
  }
}

}  // namespace phalanx
