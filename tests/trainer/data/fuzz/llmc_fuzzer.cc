// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "tests/fuzz/target.h"
#include "tests/trainer/data/fuzz/use.h"
#include "tests/trainer/io/temporary_folder.h"

using namespace phalanx;

namespace {

constexpr std::size_t kUsed = 12;  // of the header's 1024 bytes

}  // namespace

/// The input is a byte that says what follows: 0, the bytes of a file; else the header's three
/// numbers, whose zeros are left out, and the tokens. If it is odd, a document begins with token 5.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder folder;
  if (size == 0) return 0;
  std::string file(fuzzing::text_of(data + 1, size - 1));
  if (data[0] != 0 && file.size() >= kUsed) file.insert(kUsed, 1024 - kUsed, '\0');
  fuzzing::write_bytes(folder / "a.bin", file);
  const std::string end = data[0] % 2 == 1 ? ", end_of_text: 5" : "";
  fuzzing::use_source("llmc", "{files: ['" + (folder / "a.bin").string() + "']" + end + "}");
  return 0;
}
