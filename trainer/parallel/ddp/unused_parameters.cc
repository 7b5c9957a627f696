// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/ddp/unused_parameters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <span>
#include <stdexcept>
#include <string_view>

#include "trainer/parallel/parallel_config.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

constexpr std::size_t kMostNamed = 8;

// How the reducer's error begins.
constexpr std::string_view kNotReduced = "Expected to have finished reduction in the prior";
// What the places of the parameters follow, after a rank and a colon: "... for rank 0: 6 7". The
// reducer tells them in no other way.
constexpr std::string_view kPlaces = "Parameter indices which did not receive grad for rank";

// The places that the reducer's error names; empty where it names none.
std::vector<std::size_t> places_in(std::string_view error, std::size_t parameters) {
  std::vector<std::size_t> places;
  const std::size_t found = error.find(kPlaces);
  if (found == std::string_view::npos) return places;
  error.remove_prefix(found);
  error = error.substr(0, error.find('\n'));
  const std::size_t colon = error.find(':');
  if (colon == std::string_view::npos) return places;
  error.remove_prefix(colon);
  constexpr std::string_view kDigits = "0123456789";
  for (std::size_t at = error.find_first_of(kDigits); at != std::string_view::npos;
       at = error.find_first_of(kDigits)) {
    error.remove_prefix(at);
    std::size_t place = 0;
    const auto read = std::from_chars(error.data(), error.data() + error.size(), place);
    if (place < parameters) places.push_back(place);
    error.remove_prefix(static_cast<std::size_t>(read.ptr - error.data()));
  }
  return places;
}

// "no gradient came for a.weight, a.bias and 3 more of 12 parameters"
std::string without_gradient(const std::vector<std::string>& names,
                             const std::vector<std::size_t>& unused) {
  if (unused.empty()) return "no gradient came for some parameters";
  std::vector<std::string_view> shown;
  for (const std::size_t place : std::span(unused).first(std::min(unused.size(), kMostNamed))) {
    shown.emplace_back(names.at(place));
  }
  const std::size_t more = unused.size() - shown.size();
  return fmt::format("no gradient came for {}{} of {} parameters", fmt::join(shown, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more), names.size());
}

std::string text_of(const std::string& error, const std::vector<std::string>& names,
                    const DdpOptions& options) {
  const std::vector<std::size_t> unused = places_in(error, names.size());
  if (!options.static_graph) return unused_parameters_text(names, unused);
  return fmt::format(
      "DDP: {} in the last backward pass, which the first one used, and parallel.ddp.static_graph "
      "says that all passes use the same: set it to false, and "
      "parallel.ddp.find_unused_parameters to true (in a program the fields of DdpOptions)",
      without_gradient(names, unused));
}

}  // namespace

std::string unused_parameters_text(const std::vector<std::string>& names,
                                   const std::vector<std::size_t>& unused) {
  return fmt::format(
      "DDP: {} in the last backward pass, and all are reduced together. Where passes leave a part "
      "of the model out, set parallel.ddp.find_unused_parameters: true (in a program "
      "DdpOptions::find_unused_parameters). Else compute the loss from all that the forward pass "
      "gives, or freeze these parameters (optimizer.freeze, requires_grad_(false))",
      without_gradient(names, unused));
}

void naming_unused_parameters(const std::vector<std::string>& names, const DdpOptions& options,
                              c10::function_ref<void()> action) {
  std::string error;
  try {
    return action();
  } catch (const std::exception& thrown) {
    error = error_text(thrown);
    // Where unused parameters are looked for they are not to blame.
    const bool searches = options.find_unused_parameters && !options.static_graph;
    if (searches || !error.starts_with(kNotReduced)) throw;
  }
  throw std::logic_error(text_of(error, names, options));
}

}  // namespace phalanx
