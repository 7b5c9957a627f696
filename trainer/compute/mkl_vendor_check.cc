// SPDX-License-Identifier: Apache-2.0
#include "trainer/compute/mkl_vendor_check.h"

#include <dlfcn.h>

#include <atomic>
#include <stdexcept>

namespace {

constexpr const char* kSymbol = "mkl_serv_intel_cpu_true";

using VendorCheck = int (*)();

std::atomic<bool> says_yes{false};
std::atomic<bool> has_asked{false};

// The library's own; null where it has none.
VendorCheck library_check() {
  static const auto check = reinterpret_cast<VendorCheck>(dlsym(RTLD_NEXT, kSymbol));
  return check;
}

int library_answer() { return library_check() == nullptr ? 0 : library_check()(); }

}  // namespace

// The linker exports it, as a shared library refers to it.
extern "C" __attribute__((visibility("default"))) int mkl_serv_intel_cpu_true() {
  has_asked = true;
  return says_yes ? 1 : library_answer();
}

namespace phalanx::compute {

bool mkl_asks_for_vendor() {
  return library_check() != nullptr &&
         dlsym(RTLD_DEFAULT, kSymbol) == reinterpret_cast<void*>(&mkl_serv_intel_cpu_true);
}

bool is_intel_cpu() { return library_answer() != 0; }

void answer_vendor_check(bool yes) {
  if (says_yes == yes) return;
  if (has_asked && !is_intel_cpu()) {
    throw std::logic_error("MKL has chosen its kernels before compute.gemm was applied");
  }
  says_yes = yes;
}

}  // namespace phalanx::compute
