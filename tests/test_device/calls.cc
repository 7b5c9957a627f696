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

// "Trainer<A, B>::run(int)" as "Trainer::run".
std::string short_name(std::string_view function) {
  std::string name;
  int depth = 0;
  for (const char c : function) {
    if (c == '(' && depth == 0) break;
    depth -= c == '>' ? 1 : 0;
    if (depth == 0 && c != '<' && c != '>') name += c;
    depth += c == '<' ? 1 : 0;
  }
  return name;
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
    calls += short_name(function);
  }
  return calls;
}

}  // namespace phalanx::test_device
