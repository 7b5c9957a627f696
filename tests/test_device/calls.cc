// SPDX-License-Identifier: Apache-2.0
#include "tests/test_device/calls.h"

#include <c10/util/Backtrace.h>

#include <sstream>
#include <string_view>

namespace phalanx::test_device {
namespace {

constexpr int kMostCalls = 6;

// "frame #3: phalanx::f(int) + 0x1f (0x55d0 in ./test)": what is between the colon and the plus.
std::string_view function_of(std::string_view frame) {
  const auto begin = frame.find(": ");
  if (begin == std::string_view::npos) return {};
  return frame.substr(begin + 2, frame.rfind(" + 0x") - begin - 2);
}

}  // namespace

std::string calls_of_phalanx() {
  std::istringstream frames(c10::get_backtrace());
  std::string calls;
  int count = 0;
  for (std::string frame; count < kMostCalls && std::getline(frames, frame);) {
    const std::string_view function = function_of(frame);
    const bool is_ours = function.find("phalanx::") != std::string_view::npos &&
                         function.find("phalanx::test_device") == std::string_view::npos;
    if (!is_ours) continue;
    calls += (count++ == 0 ? "" : " < ");
    calls += function.substr(0, function.find('('));
  }
  return calls;
}

}  // namespace phalanx::test_device
