// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "tests/fuzz/target.h"
#include "tests/trainer/data/fuzz/use.h"
#include "tests/trainer/io/temporary_folder.h"

using namespace phalanx;

/// The input is a byte that says how long the .bin is, and the .idx.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder folder;
  if (size == 0) return 0;
  fuzzing::write_bytes(folder / "a.bin", std::string(data[0], 'x'));
  fuzzing::write_bytes(folder / "a.idx", fuzzing::text_of(data + 1, size - 1));
  fuzzing::use_source("megatron", "{files: ['" + (folder / "a").string() + "']}");
  return 0;
}
