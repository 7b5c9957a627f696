// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <filesystem>
#include <span>
#include <stdexcept>
#include <vector>

#include "tests/fuzz/promise.h"
#include "tests/fuzz/target.h"
#include "tests/trainer/io/temporary_folder.h"
#include "trainer/api/sharded_tensor_view.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/safetensors.h"
#include "trainer/io/file.h"
#include "trainer/tensors/tensors.h"

using namespace phalanx;

namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, std::span<const std::byte> bytes) {
  File(path, O_WRONLY | O_CREAT | O_TRUNC).write(bytes);
}

/// Reads every tensor; what they hold together is no more than the file.
std::vector<ShardedTensorView> read_all(const SafetensorsFile& file, std::size_t file_size) {
  std::vector<ShardedTensorView> views;
  std::size_t bytes = 0;
  for (const SafetensorsEntry& entry : file.header().entries) {
    fuzzing::require(entry.end <= file_size, "a tensor ends within its file");
    const at::Tensor tensor = tensors::empty(entry.shape, entry.dtype);
    fuzzing::require(tensor.nbytes() == entry.end - entry.begin, "shape and range agree");
    bytes += tensor.nbytes();
    file.read_into(entry, tensor);
    views.push_back(whole_tensor(entry.name, tensor));
  }
  fuzzing::require(bytes + file.data_start() == file_size, "the tensors and the head are the file");
  return views;
}

}  // namespace

/// The input is a file.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder folder;
  const fs::path path = folder.path() / "model.safetensors";
  write(path, std::as_bytes(std::span(data, size)));
  try {
    const auto views = read_all(SafetensorsFile(path), size);
    const fs::path copy = folder.path() / "copy.safetensors";
    fs::remove(copy);
    write_safetensors(copy, views);
    const SafetensorsFile again(copy);
    fuzzing::require(again.header().entries.size() == views.size(), "what was read can be written");
  } catch (const CheckpointError& error) {
    fuzzing::require(*error.what() != '\0', "an error says what is wrong");
  } catch (const UserError& error) {
    fuzzing::require(*error.what() != '\0', "a Git LFS pointer is said to be one");
  }
  return 0;
}
