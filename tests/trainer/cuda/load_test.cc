// SPDX-License-Identifier: Apache-2.0
#include "trainer/cuda/load.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <string>
#include <system_error>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <vector>

#include "tests/trainer/io/file_size_limit.h"
#include "trainer/host/gpus.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

bool has_cuda_kernel(const char* operation) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(operation, "")
      .hasKernelForDispatchKey(c10::DispatchKey::CUDA);
}

std::string answer_of_nccl() {
  try {
    load_cuda().make_nccl_backend(c10::make_intrusive<c10d::HashStore>(), 0, 1,
                                  std::chrono::seconds(10));
  } catch (const std::exception& error) {
    return error_text(error);
  }
  return "a backend";
}

std::ptrdiff_t open_descriptors() {
  using Entries = std::filesystem::directory_iterator;
  return std::distance(Entries("/proc/self/fd"), Entries());
}

bool is_refused() {
  const FileSizeLimit limit(0);
  try {
    load_cuda();
  } catch (const std::system_error&) {
    return true;
  }
  return false;
}

// The first test: once the part is loaded it is not written again.
TEST(CudaPart, LeavesNothingOpenWhereItCannotBeWritten) {
  const std::ptrdiff_t before = open_descriptors();
  EXPECT_TRUE(is_refused());
  EXPECT_EQ(open_descriptors(), before);
}

TEST(CudaPart, IsLoadedOnDemandWithItsOperators) {
  EXPECT_FALSE(has_cuda_kernel("aten::_fused_adamw_"));
  const CudaPart& part = load_cuda();
  EXPECT_TRUE(has_cuda_kernel("aten::_fused_adamw_"));
  EXPECT_EQ(&part, &load_cuda());
}

TEST(CudaPart, AnswersWithoutAGpu) {
  if (usable_gpus() > 0) GTEST_SKIP() << "this host has GPUs";
  EXPECT_THAT([] { load_cuda().device_count(); },
              testing::ThrowsMessage<std::exception>(testing::AnyOf(
                  testing::HasSubstr("NVIDIA"), testing::HasSubstr("No CUDA GPUs"))));
  EXPECT_THAT(answer_of_nccl(), testing::HasSubstr("no GPUs found"));
}

TEST(CudaPart, AnswersWithAGpu) {
  if (usable_gpus() == 0) GTEST_SKIP() << "no NVIDIA GPU on this host: not tested";
  ASSERT_GE(load_cuda().device_count(), 1);
  load_cuda().use_device(0);
  const CudaDevice gpu = load_cuda().describe(0);
  EXPECT_FALSE(gpu.name.empty());
  EXPECT_GT(gpu.bytes, int64_t{1} << 30);
  EXPECT_EQ(gpu.cuda_version, 13000);
  EXPECT_EQ(gpu.nccl_version / 10000, 2);  // the library's, which may be newer than the headers
  EXPECT_EQ(answer_of_nccl(), "a backend");
}

constexpr std::array kDump{"TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC"};

// What both variables of c10d's watchdog are after a backend was made with another one set.
std::string dump_variables(const char* variable, const char* value) {
  for (const char* name : kDump) ::unsetenv(name);
  ::setenv(variable, value, 1);
  answer_of_nccl();
  std::string answer;
  for (const char* name : kDump) {
    const char* const found = ::getenv(name);
    answer += std::string(found == nullptr ? "unset" : found) + " ";
    ::unsetenv(name);
  }
  ::unsetenv(variable);
  return answer;
}

TEST(CudaPart, HasTheWatchdogEndARankAtOnceUnlessADumpIsWanted) {
  EXPECT_EQ(dump_variables("PHALANX_TEST_NOTHING", ""), "0 0 ");
  EXPECT_EQ(dump_variables(kDump[0], "1"), "1 unset ");
  EXPECT_EQ(dump_variables(kDump[1], "5000"), "0 5000 ");
  EXPECT_EQ(dump_variables("TORCH_FR_BUFFER_SIZE", "2000"), "unset unset ");
  EXPECT_EQ(dump_variables("TORCH_FR_BUFFER_SIZE", "0"), "0 0 ");
  EXPECT_EQ(dump_variables("TORCH_NCCL_TRACE_BUFFER_SIZE", "2000"), "unset unset ");
}

TEST(CudaPart, NumbersGpusAsTheDriversFilesDo) {
  if (usable_gpus() == 0) GTEST_SKIP() << "no NVIDIA GPU on this host: not tested";
  // In a container the driver's files may be hidden, and with MIG they do not name its parts.
  if (gpu_addresses().empty()) GTEST_SKIP() << "the driver's files name no GPU of this process";
  std::vector<std::string> addresses;
  for (int64_t gpu = 0; gpu < load_cuda().device_count(); ++gpu) {
    addresses.push_back(load_cuda().describe(gpu).pci_address);
  }
  EXPECT_EQ(gpu_addresses(), addresses);
}

}  // namespace
}  // namespace phalanx
