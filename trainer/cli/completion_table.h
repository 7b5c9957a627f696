// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trainer/cli/command_parse.h"

namespace phalanx {

/// What can be completed, for completion.bash: lines of fields between tabs, the first of them the
/// kind of line, the second what it is about, the others what may stand there:
///
///   action   ""|COMMAND            names of actions; of the program's own the first is meant
///                                  where none is named
///   flag     COMMAND [ACTION]      flags, with `=` where they take a value: one of several with
///                                  its value, a path with `/`
///   takes    COMMAND [ACTION]      what its positionals are, in order: config, run, key, override
///                                  or word; with * behind those that there may be any number of
///   word     COMMAND [WORD ...]    words that may follow, where a positional takes a word
///   key      ""|SECTION            what is in a section of a config: `field=`, `section.`
///   value    FIELD                 its values, as far as they can be listed; `/` stands for a path
std::string completion_table(const NamedCommand& program);

}  // namespace phalanx
