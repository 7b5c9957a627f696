// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/checkpoint/written_dtype.h"

#include <algorithm>
#include <array>

#include "trainer/cli/command.h"

namespace phalanx {
namespace {

constexpr std::array kDtypes{
    WrittenDtype{"fp32", at::kFloat},
    WrittenDtype{"bf16", at::kBFloat16},
    WrittenDtype{"fp16", at::kHalf},
};

}  // namespace

std::span<const WrittenDtype> written_dtypes() { return kDtypes; }

at::ScalarType asked_dtype(const Invocation& invocation, at::ScalarType present) {
  const auto asked = invocation.value("--dtype");
  if (!asked || !c10::isFloatingType(present)) return present;
  const auto found = std::find_if(kDtypes.begin(), kDtypes.end(),
                                  [&](const WrittenDtype& each) { return each.name == asked; });
  return found == kDtypes.end() ? present : found->dtype;
}

Flag dtype_flag() {
  Flag flag{.name = "--dtype",
            .summary = "the precision of what is written; default: as it is",
            .takes = Flag::Takes::listed};
  for (const WrittenDtype& dtype : written_dtypes()) flag.values.push_back({dtype.name});
  return flag;
}

}  // namespace phalanx
