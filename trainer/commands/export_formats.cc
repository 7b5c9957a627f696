// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "trainer/cli/command.h"
#include "trainer/commands/export_format.h"

namespace phalanx {

// Each in a file of its own.
ExportFormat::Write export_hugging_face;

namespace {

constexpr std::array kFormats{
    ExportFormat{"hf", "what Hugging Face's from_pretrained opens", export_hugging_face},
};

}  // namespace

std::span<const ExportFormat> export_formats() { return kFormats; }

Flag format_flag() {
  Flag flag{
      .name = "--format", .summary = "the form of what is written", .takes = Flag::Takes::listed};
  for (const ExportFormat& format : kFormats) {
    flag.values.push_back({format.name, format.meaning});
  }
  return flag;
}

const ExportFormat& export_format(const Invocation& invocation) {
  const auto named = invocation.value("--format");
  const auto found = std::find_if(kFormats.begin(), kFormats.end(),
                                  [&](const ExportFormat& each) { return each.name == named; });
  return found == kFormats.end() ? kFormats.front() : *found;
}

}  // namespace phalanx
