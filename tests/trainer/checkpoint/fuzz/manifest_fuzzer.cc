// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "tests/fuzz/promise.h"
#include "tests/fuzz/target.h"
#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/checksum.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/checkpoint/format/manifest_rules.h"
#include "trainer/checkpoint/format/sha256.h"

using namespace phalanx;

namespace {

/// The text as its writer would end it: no mutation would guess a checksum.
std::string with_checksum(std::string_view body) {
  return std::string(body) + ",\n  \"checksum\": \"" + checksum_digits(checksum_of(body)) +
         "\"\n}\n";
}

/// That what is to be read lies in files that are listed, each byte of them once.
void require_covered(const Manifest& manifest) {
  std::map<std::string, uint64_t> bytes;
  for (const auto& [name, file] : manifest.files) bytes[name] = file.head_bytes;
  for (const ManifestTensor& tensor : manifest.tensors) {
    int64_t place = 0;
    for (const ManifestSlice& slice : tensor.slices) {
      fuzzing::require(slice.end > slice.begin, "a slice is not empty");
      fuzzing::require(tensor.has_boxes() || slice.begin == place, "slices follow each other");
      fuzzing::require(!slice.box || lies_in(*slice.box, tensor.shape), "a box lies in its tensor");
      fuzzing::require(slice.end <= slice.part().in(tensor.shape).box.elements(),
                       "a slice ends within its box");
      place += slice.end - slice.begin;
      const uint64_t size =
          static_cast<uint64_t>(slice.end - slice.begin) * c10::elementSize(tensor.dtype);
      fuzzing::require(manifest.files.contains(slice.file),
                       "a slice stands in a file that is listed");
      fuzzing::require(slice.offset + size <= manifest.files.at(slice.file).size,
                       "a slice ends within its file");
      bytes[slice.file] += size;
    }
    fuzzing::require(place == whole_box(tensor.shape).elements(), "slices hold each element once");
  }
  for (const auto& [name, file] : manifest.files) {
    fuzzing::require(bytes.at(name) == file.size, "head and slices are the file");
  }
}

/// That what is to be read lies in the checkpoint's folder.
void require_plain(const Manifest& manifest) {
  for (const auto& [name, file] : manifest.attachments) {
    fuzzing::require(is_plain_file_name(name), "an attachment's name names no folder");
    fuzzing::require(file.head_bytes == file.size, "an attachment is read whole");
    fuzzing::require(file.size <= kLargestAttachment, "an attachment is not too large");
  }
}

/// What is read is written as it was.
void read_sums(std::string_view text) {
  try {
    const auto sums = parse_sha256_sums(text);
    fuzzing::require(parse_sha256_sums(format_sha256_sums(sums)) == sums,
                     "sums are read as written");
  } catch (const CheckpointError&) {
    // It is none.
  }
}

void read(const std::string& text) {
  try {
    const Manifest manifest = parse_manifest(text, "fuzz/manifest.json");
    require_covered(manifest);
    require_plain(manifest);
    const std::string written = format_manifest(manifest);
    fuzzing::require(format_manifest(parse_manifest(written, "again")) == written,
                     "a manifest that is written again is the same");
  } catch (const CheckpointError& error) {
    fuzzing::require(*error.what() != '\0', "an error says what is wrong");
  }
}

}  // namespace

/// The input is a manifest without its checksum, or after a zero byte one as it stands; and as it
/// stands a file of SHA-256 sums.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_sums(text);
  read(text.starts_with('\0') ? std::string(text.substr(1)) : with_checksum(text));
  return 0;
}
