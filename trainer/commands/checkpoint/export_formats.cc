// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "trainer/cli/command.h"
#include "trainer/commands/checkpoint/export_format.h"

// Every format, in the order of help; the first is the default. `hugging_face` is
// `ExportFormat hugging_face_format()` in export_hugging_face.cc.
#define PHALANX_EXPORT_FORMATS(format) format(hugging_face) format(peft)

namespace phalanx {

#define DECLARE(name) ExportFormat name##_format();
PHALANX_EXPORT_FORMATS(DECLARE)
#undef DECLARE

std::span<const ExportFormat> export_formats() {
#define MAKE(name) name##_format(),
  static const std::array formats{PHALANX_EXPORT_FORMATS(MAKE)};
#undef MAKE
  return formats;
}

Flag format_flag() {
  Flag flag{
      .name = "--format", .summary = "the form of what is written", .takes = Flag::Takes::listed};
  for (const ExportFormat& format : export_formats()) {
    flag.values.push_back({format.name, format.meaning});
  }
  return flag;
}

const ExportFormat& export_format(const Invocation& invocation) {
  const auto formats = export_formats();
  const auto named = invocation.value("--format");
  const auto found = std::find_if(formats.begin(), formats.end(),
                                  [&](const ExportFormat& each) { return each.name == named; });
  return found == formats.end() ? formats.front() : *found;
}

}  // namespace phalanx
