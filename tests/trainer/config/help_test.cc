// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/text/help.h"

#include <gtest/gtest.h>

#include "tests/trainer/config/example.h"
#include "trainer/base/user_error.h"

namespace phalanx::config {
namespace {

TEST(Help, ShowsEveryFieldOfEveryClass) {
  EXPECT_EQ(help(field_entries(example()), {.width = 200}),
            "title  (text; default \"run of ${oc.env:PHALANX_TEST_USER,nobody}\")\n"
            "    what the run is called\n"
            "level  (one of info, warning; default info)\n"
            "    how much is said\n"
            "loader  (a section)\n"
            "    how data is loaded\n"
            "loader.workers  (an integer >= 0; default 2; a resume may change it)\n"
            "    background threads\n"
            "loader.shuffle  (true or false; default true)\n"
            "    whether samples are shuffled\n"
            "optimizer.name  (one of adamw, sgd; mandatory)\n"
            "    what updates the weights\n"
            "  with optimizer.name: adamw\n"
            "optimizer.lr  (a real number >= 0; default 0.001; a resume may change it)\n"
            "    learning rate\n"
            "optimizer.betas  (a list of 2 real numbers in [0, 1]; default [0.9, 0.999])\n"
            "    decay of the moments\n"
            "optimizer.warmup_steps  (an integer >= 0, or null; in steps; default null)\n"
            "    length of the ramp\n"
            "optimizer.loader  (a section)\n"
            "    a nested section\n"
            "optimizer.loader.workers  (an integer >= 0; default 4; a resume may change it)\n"
            "    background threads\n"
            "optimizer.loader.shuffle  (true or false; default true)\n"
            "    whether samples are shuffled\n"
            "optimizer.kind  (one of norm, value; default norm)\n"
            "    how to clip\n"
            "optimizer.file  (a path; mandatory)\n"
            "    what to read\n"
            "optimizer.groups  (a list of sections; default [])\n"
            "    a list of sections\n"
            "optimizer.groups[].workers  (an integer >= 0; default 2; a resume may change it)\n"
            "    background threads\n"
            "optimizer.groups[].shuffle  (true or false; default true)\n"
            "    whether samples are shuffled\n"
            "optimizer.extra  (a section, or null; default null)\n"
            "    a section that may be missing\n"
            "optimizer.extra.workers  (an integer >= 0; default 2; a resume may change it)\n"
            "    background threads\n"
            "optimizer.extra.shuffle  (true or false; default true)\n"
            "    whether samples are shuffled\n"
            "optimizer.limit  (a real number > 0, or null; default null)\n"
            "    a bound\n"
            "  with optimizer.name: sgd\n"
            "optimizer.lr  (a real number >= 0; default 0.1)\n"
            "    learning rate\n");
}

std::string explained(const std::string& path, const std::string& yaml) {
  const Node resolved = resolve_example(yaml);
  return explain(example(), path, &resolved, {.width = 200});
}

TEST(Explain, ShowsWithAConfigTheChosenClassAlone) {
  const std::string sgd = explained("optimizer.lr", "optimizer: {name: sgd, lr: 0.5}");
  EXPECT_EQ(sgd,
            "  with optimizer.name: sgd\n"
            "optimizer.lr  (a real number >= 0; default 0.1)\n"
            "    learning rate\n"
            "    here 0.5  # test.yaml:1\n");
  const std::string section = explained("optimizer", "optimizer: {name: adamw, file: x}");
  EXPECT_NE(section.find("optimizer.betas  ("), std::string::npos);
  EXPECT_EQ(section.find("with optimizer.name: sgd"), std::string::npos);
}

TEST(Explain, ShowsWithoutAConfigEveryClass) {
  const std::string text = explain(example(), "optimizer.lr", nullptr);
  EXPECT_NE(text.find("with optimizer.name: adamw"), std::string::npos);
  EXPECT_NE(text.find("with optimizer.name: sgd"), std::string::npos);
}

TEST(Explain, NamesTheClassesThatHaveAFieldWhichTheChosenOneLacks) {
  try {
    explained("optimizer.betas", "optimizer: sgd");
    ADD_FAILURE() << "it was explained";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "this config has no field 'optimizer.betas': it belongs to optimizer.name: adamw; "
                 "explain shows it without a config");
  }
}

}  // namespace
}  // namespace phalanx::config
