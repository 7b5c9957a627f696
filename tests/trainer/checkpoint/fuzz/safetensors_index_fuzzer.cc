// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/tensor.h>
#include <fcntl.h>

#include <string_view>

#include "tests/fuzz/promise.h"
#include "tests/fuzz/target.h"
#include "tests/trainer/io/temporary_folder.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/open_safetensors.h"
#include "trainer/checkpoint/format/safetensors.h"
#include "trainer/checkpoint/load/slice_reader.h"
#include "trainer/io/file.h"
#include "trainer/tensors/tensors.h"

using namespace phalanx;

namespace {

namespace fs = std::filesystem;

/// A folder with two files of tensors, for an index to be right or wrong about.
const fs::path& model_folder() {
  static const TemporaryFolder folder;
  static const fs::path path = [] {
    const at::Tensor values = at::tensor({0.0F, 1.0F, 2.0F, 3.0F});
    write_safetensors(folder.path() / "1.safetensors",
                      std::vector{whole_tensor("a", values), whole_tensor("b", values)});
    write_safetensors(folder.path() / "2.safetensors",
                      std::vector{whole_tensor("c", values), whole_tensor("d", values)});
    File(folder.path() / "text", O_WRONLY | O_CREAT).write("no safetensors");
    return folder.path();
  }();
  return path;
}

void read_all(const Checkpoint& model) {
  SliceReader reader(model.path, model.manifest);
  for (const ManifestTensor& tensor : model.manifest.tensors) {
    reader.read(tensor, 0, tensors::empty(tensor.shape, tensor.dtype));
  }
}

}  // namespace

/// The input is a model.safetensors.index.json.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fs::path index = model_folder() / "model.safetensors.index.json";
  File(index, O_WRONLY | O_CREAT | O_TRUNC)
      .write(std::string_view(reinterpret_cast<const char*>(data), size));
  try {
    read_all(open_safetensors_model(model_folder()));
  } catch (const CheckpointError& error) {
    fuzzing::require(*error.what() != '\0', "an error says what is wrong");
  } catch (const UserError& error) {
    fuzzing::require(*error.what() != '\0', "a Git LFS pointer is said to be one");
  } catch (const IoError&) {
    // A file that is not there.
  }
  return 0;
}
