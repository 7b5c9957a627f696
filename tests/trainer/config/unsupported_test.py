# SPDX-License-Identifier: Apache-2.0
"""The compiler names each member that a config cannot hold, and the type to use, once."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

STRUCT = """\
#include <array>
#include <functional>
#include <list>
#include <map>

#include "trainer/config/tree/schema.h"

struct Plain {
  int value = 0;
};

struct Own {
MEMBERS
  static void describe(phalanx::config::Schema<Own>& s) {
FIELDS
  }
};
"""

HELD = ["bool", "std::int64_t", "double", "std::string", "std::filesystem::path",
        "std::vector<std::optional<double>>", "std::map<std::string, std::chrono::milliseconds>"]
ADVICE = {
    "float": "UseDouble",
    "std::vector<long double>": "UseDouble",
    "int": "UseStdInt64",
    "std::optional<unsigned>": "UseStdInt64",
    "char": "UseStdString",
    "const char*": "UseStdString",
    "std::list<double>": "UseStdVectorOrStdMapOfStdString",
    "std::map<int, double>": "UseStdVectorOrStdMapOfStdString",
    "std::array<double, 2>": "IncludeTrainerConfigTreeArray",
    "Plain": "DeclareStaticDescribeInTheMembersType",
    "float*": "UseATypeThatSchemaFieldNames",
    "std::function<void()>": "UseATypeThatSchemaFieldNames",
}


def compiled(types, refined=""):
    """The code and the messages of a compiler given a config with members m0, m1, … of types."""
    members = "\n".join(f"  {name} m{i};" for i, name in enumerate(types))
    fields = "\n".join(f'    s.field("m{i}", &Own::m{i}, ""){refined};' for i in range(len(types)))
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "own.cc")
        source.write_text(STRUCT.replace("MEMBERS", members).replace("FIELDS", fields))
        result = subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-I.", source], text=True,
                                capture_output=True, timeout=60, env={"PATH": "/usr/bin",
                                                                      "LC_ALL": "C"})
    return result.returncode, result.stderr


class UnsupportedTest(unittest.TestCase):

    def test_names_each_member_and_what_to_use(self):
        code, messages = compiled(ADVICE)
        self.assertEqual(code, 1, messages)
        # The line behind an error is the user's own.
        errors = re.findall(r"error: use of deleted function '\S*::(\w+) .*\n.*&Own::(m\d+),",
                            messages)
        self.assertEqual(errors, [(advice, f"m{i}") for i, advice in enumerate(ADVICE.values())],
                         messages)
        self.assertEqual(messages.count("error: "), len(ADVICE), messages)

    def test_takes_what_a_config_holds(self):
        self.assertEqual(compiled(HELD), (0, ""))

    def test_a_bound_is_no_second_error(self):
        _, messages = compiled(["float"], '.at_least(0).unit("s")')
        self.assertEqual(messages.count("error: "), 1, messages)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
