// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <string_view>

#include "tests/fuzz/target.h"
#include "tests/trainer/data/fuzz/use.h"
#include "tests/trainer/io/temporary_folder.h"

using namespace phalanx;

namespace {

constexpr std::size_t kUsed = 12;  // of the header's 1024 bytes

/// The bytes of a file: 0 stands before those themselves, another byte before a header's three
/// numbers, whose zeros are left out, and tokens.
std::string file_of(std::string_view written) {
  if (written.empty()) return {};
  std::string file(written.substr(1));
  if (written[0] != '\0' && file.size() >= kUsed) file.insert(kUsed, 1024 - kUsed, '\0');
  return file;
}

}  // namespace

/// The input is a byte, the end-of-text token or 0 for that of the format; one that says how much
/// of the rest is a first file; and two files, the second of which may be missing.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder folder;
  if (size < 2) return 0;
  const std::string_view rest = fuzzing::text_of(data + 2, size - 2);
  const std::size_t first = std::min<std::size_t>(data[1], rest.size());
  std::string files = "'" + (folder / "a").string() + "'";
  fuzzing::write_bytes(folder / "a", file_of(rest.substr(0, first)));
  if (first < rest.size()) {
    fuzzing::write_bytes(folder / "b", file_of(rest.substr(first)));
    files += ", '" + (folder / "b").string() + "'";
  }
  const std::string end = data[0] == 0 ? "" : ", end_of_text: " + std::to_string(data[0]);
  fuzzing::use_source("llmc", "{files: [" + files + "]" + end + "}");
  return 0;
}
