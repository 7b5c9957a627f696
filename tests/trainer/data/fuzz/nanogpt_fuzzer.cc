// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <string_view>

#include "tests/fuzz/target.h"
#include "tests/trainer/data/fuzz/use.h"
#include "tests/trainer/io/temporary_folder.h"

using namespace phalanx;

/// The input is a byte of options, one that says how much of the rest is a first file, and two
/// files.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder folder;
  if (size < 2) return 0;
  const std::string_view rest = fuzzing::text_of(data + 2, size - 2);
  const std::size_t first = std::min<std::size_t>(data[1], rest.size());
  fuzzing::write_bytes(folder / "a_000000.bin", rest.substr(0, first));
  fuzzing::write_bytes(folder / "a_000001.bin", rest.substr(first));
  const std::string type = data[0] % 2 == 0 ? "uint16" : "uint32";
  const std::string end = data[0] / 2 % 2 == 0 ? "null" : std::to_string(data[0] / 4);
  fuzzing::use_source("nanogpt", "{files: ['" + (folder / "a_*.bin").string() +
                                     "'], dtype: " + type + ", end_of_text: " + end + "}");
  return 0;
}
