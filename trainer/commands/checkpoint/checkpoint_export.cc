// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/checked_file.h"
#include "trainer/checkpoint/load/averaged.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/checkpoint/load/named.h"
#include "trainer/cli/command.h"
#include "trainer/commands/average_flag.h"
#include "trainer/commands/checkpoint/checkpoint_paths.h"
#include "trainer/commands/checkpoint/copy_model.h"
#include "trainer/commands/checkpoint/export_format.h"
#include "trainer/commands/checkpoint/written_dtype.h"
#include "trainer/commands/new/new_folder.h"
#include "trainer/commands/positionals.h"
#include "trainer/config/syntax/parse_json.h"
#include "trainer/config/syntax/print.h"

namespace phalanx {
namespace {

int run(const Invocation& invocation) {
  Checkpoint checkpoint = open_checkpoint(checkpoint_at(invocation.arguments[0]));
  const bool takes_average = invocation.has("--average");
  if (takes_average) checkpoint = with_averages(std::move(checkpoint));
  for (const std::string& note : {note_of_better(invocation.arguments[0], checkpoint.path),
                                  takes_average ? std::string() : note_of_averages(checkpoint)}) {
    if (!note.empty()) fmt::print(stderr, "note: {}\n", note);
  }
  const std::string done = export_format(invocation).write(checkpoint, invocation);
  fmt::print("{}: {}\n", checkpoint.path.filename().string(), done);
  return 0;
}

}  // namespace

Command checkpoint_export_command() {
  return {
      .name = "export",
      .summary = "write the model in a form for other programs",
      .help =
          "Takes one checkpoint, or the newest of a run (RUN@best: the best), and compares all "
          "that it "
          "reads with its checksums. By default it writes a folder that Hugging Face's "
          "from_pretrained opens, with the files that go with the model (a tokenizer's, "
          "chat templates) and the token that ends its texts; "
          "--format names another form. Adapters (the section lora) are merged into the model "
          "that they were trained beside, or written alone by --format=peft. DESTINATION is a new "
          "or empty folder.",
      .examples = {"checkpoint export runs/my/run_0 my_gpt2",
                   "checkpoint export runs/my/run_0 my_gpt2 --dtype=bf16"},
      .positionals = {kCheckpoints, {"DESTINATION", Positional::Takes::run}},
      .flags = {format_flag(),
                dtype_flag(),
                average_flag(),
                {.name = "--base",
                 .summary = "of adapters: the model that they were trained beside; default: where "
                            "the run found it",
                 .takes = Flag::Takes::path}},
      .run = run,
  };
}

}  // namespace phalanx
