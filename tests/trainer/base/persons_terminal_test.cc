// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/persons_terminal.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <stdlib.h>

#include "trainer/base/descriptor.h"

namespace phalanx {
namespace {

class PersonsTerminal : public testing::Test {
 protected:
  void SetUp() override {
    forget();
    int user = -1;
    int program = -1;
    ASSERT_EQ(::openpty(&user, &program, nullptr, nullptr, nullptr), 0);
    user_ = Descriptor(user);
    program_ = Descriptor(program);
  }
  void TearDown() override { forget(); }

  bool is_persons() const { return is_persons_terminal(program_.number()); }

 private:
  static void forget() {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "SLURM_PTY_PORT"}) {
      ::unsetenv(name);
    }
  }

  Descriptor user_;
  Descriptor program_;
};

TEST_F(PersonsTerminal, IsATerminal) {
  EXPECT_TRUE(is_persons());
  EXPECT_FALSE(is_persons_terminal(make_pipe().write_end.number()));
}

TEST_F(PersonsTerminal, IsNotThatOfATask) {
  ::setenv("OMPI_COMM_WORLD_RANK", "0", 1);
  EXPECT_FALSE(is_persons());
}

TEST_F(PersonsTerminal, IsThatOfATaskWhereSlurmSharesThePersons) {
  ::setenv("SLURM_PROCID", "0", 1);
  EXPECT_FALSE(is_persons());
  ::setenv("SLURM_PTY_PORT", "40123", 1);
  EXPECT_TRUE(is_persons());
}

}  // namespace
}  // namespace phalanx
