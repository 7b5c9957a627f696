// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/own_functions.h"

#include <fmt/format.h>

#include <utility>

namespace phalanx::rpc {

bool is_own_function(std::string_view name) { return name.starts_with("phalanx/"); }

// The text: number, length of the name, name, the caller's text.
Values make_arguments(int64_t id, const std::string& function, Values arguments) {
  arguments.text = fmt::format("{} {} {}{}", id, function.size(), function, arguments.text);
  return arguments;
}

FunctionTable own_functions(std::function<std::shared_ptr<Served>()> served) {
  FunctionTable functions;
  functions[kPing] = function_of([](const Values&) { return Values{}; });
  functions[kMake] = function_of([served](Values values) {
    size_t read = 0;
    const std::string text = std::move(values.text);
    const int64_t id = std::stoll(text, &read);
    size_t read_size = 0;
    const auto size = static_cast<size_t>(std::stoll(text.substr(read), &read_size));
    const size_t begin = read + read_size + 1;
    values.text = text.substr(begin + size);
    served()->make(id, text.substr(begin, size), std::move(values));
    return Values{};
  });
  functions[kFetch] = function_of(
      [served](const Values& values) { return served()->value(std::stoll(values.text)); });
  functions[kRetain] = function_of([served](const Values& values) {
    served()->retain(std::stoll(values.text));
    return Values{};
  });
  functions[kRelease] = function_of([served](const Values& values) {
    served()->release(std::stoll(values.text));
    return Values{};
  });
  return functions;
}

}  // namespace phalanx::rpc
