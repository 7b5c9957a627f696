// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/command_line.h"

int main(int argc, char** argv) { return phalanx::run_command_line(argc, argv); }
