// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/format/fingerprint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <set>
#include <span>
#include <sstream>
#include <vector>

#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/checksum.h"
#include "trainer/checkpoint/format/manifest_rules.h"
#include "trainer/checkpoint/format/safetensors_header.h"
#include "trainer/checkpoint/load/slice_reader.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

constexpr char kFailed = '!';
constexpr int64_t kElements = int64_t{1} << 20;  // that are read at a time

// A line: "wte.weight F32 [256, 16] 0123456789abcdef".
std::string line_of(SliceReader& reader, const ManifestTensor& tensor) {
  std::string sums;
  const int64_t elements = elements_of(tensor);
  for (int64_t begin = 0; begin < elements; begin += kElements) {
    const at::Tensor values = tensors::empty({std::min(kElements, elements - begin)}, tensor.dtype);
    reader.read(tensor, begin, values);
    sums += checksum_digits(checksum_of(std::as_bytes(
        std::span(static_cast<const char*>(values.const_data_ptr()), values.nbytes()))));
  }
  return fmt::format("{} {} [{}] {}\n", tensor.name, safetensors_dtype_name(tensor.dtype),
                     fmt::join(tensor.shape, ", "), checksum_digits(checksum_of(sums)));
}

// A line for each tensor of this rank's share; or why it cannot read them, for all ranks to throw.
std::string lines_of_rank(const Checkpoint& checkpoint, const Ranks& ranks) {
  std::string lines;
  try {
    SliceReader reader(checkpoint.path, checkpoint.manifest);
    int64_t number = 0;
    for (const ManifestTensor& tensor : checkpoint.manifest.tensors) {
      if (tensor.part != kModelPart) continue;
      if (number++ % ranks.world_size() == ranks.rank()) lines += line_of(reader, tensor);
    }
  } catch (const std::exception& error) {
    return kFailed + std::string(error.what());
  }
  return lines;
}

}  // namespace

std::string fingerprint_of(const Checkpoint& checkpoint, const Ranks& ranks) {
  std::set<std::string> lines;
  for (const std::string& some : ranks.all_gather(lines_of_rank(checkpoint, ranks))) {
    if (some.starts_with(kFailed)) throw CheckpointError(some.substr(1));
    std::istringstream text(some);
    for (std::string line; std::getline(text, line);) lines.insert(line);
  }
  return "xxh3_64:" + checksum_digits(checksum_of(fmt::format("{}", fmt::join(lines, "\n"))));
}

}  // namespace phalanx
