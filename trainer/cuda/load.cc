// SPDX-License-Identifier: Apache-2.0
#include "trainer/cuda/load.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <stdexcept>
#include <string>

#include "trainer/base/descriptor.h"

// The shared object itself, which the build puts into the program: one file is all there is to
// copy to another machine.
extern "C" const char phalanx_cuda_object_begin[];
extern "C" const char phalanx_cuda_object_end[];

namespace phalanx {
namespace {

// A file without a name, gone when it is closed and unmapped.
Descriptor file_in_memory(std::span<const char> content) {
  Descriptor file = take_descriptor(::memfd_create("phalanx_cuda", MFD_CLOEXEC),
                                    "make a file in memory for the CUDA part");
  while (!content.empty()) {
    const ssize_t written = ::write(file.number(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_system_error("write the CUDA part to a file in memory");
    content = content.subspan(static_cast<size_t>(written));
  }
  return file;
}

const CudaPart* load() {
  const Descriptor file = file_in_memory({phalanx_cuda_object_begin, phalanx_cuda_object_end});
  const std::string path = fmt::format("/proc/self/fd/{}", file.number());
  // Global, so that exceptions and types are the same on both sides. Never closed: LibTorch's
  // operators are registered with it.
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) {
    throw std::runtime_error(fmt::format(
        "LibTorch's CUDA libraries could not be loaded: {}. They come with the wheels that this "
        "program was linked with; LD_LIBRARY_PATH names those of another install (its torch/lib)",
        ::dlerror()));
  }
  auto* const get = reinterpret_cast<GetCudaPart*>(::dlsym(handle, kCudaPartSymbol));
  if (get == nullptr) throw std::logic_error("the CUDA part has no entry");
  return get();
}

}  // namespace

const CudaPart& load_cuda() {
  static const CudaPart* const part = load();
  return *part;
}

}  // namespace phalanx
