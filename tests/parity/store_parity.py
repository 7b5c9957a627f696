# SPDX-License-Identifier: Apache-2.0
"""`trainer store` with the store that a Python program serves (torch.distributed.TCPStore)."""

import datetime
import os

import torch.distributed as dist

from tests.end_to_end import runs
from tests.ports import free_port


class StoreParityTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        timeout = datetime.timedelta(seconds=60)
        self.served = dist.TCPStore("127.0.0.1", 0, None, True, timeout, wait_for_workers=False)
        self.at = f"--at=127.0.0.1:{self.served.port}"

    def store(self, *arguments, code=0, **options):
        return self.trainer("store", *arguments, self.at, code=code, **options)

    def test_both_see_what_the_other_sets(self):
        self.store("set", "of ours", "some text")
        self.assertEqual(self.served.get("of ours"), b"some text")
        self.served.set("of python", "another")
        self.assertEqual(self.store("get", "of python").stdout, "another\n")
        self.assertEqual(self.store("add", "count", "3").stdout, "3\n")
        self.assertEqual(self.served.add("count", 2), 5)
        self.assertEqual(self.store("add", "count", "1").stdout, "6\n")
        self.store("wait", "count", "of ours")
        self.store("delete", "of ours")
        self.assertFalse(self.served.check(["of ours"]))

    def test_bytes_stay_what_they_are(self):
        data = bytes(range(256)) * 3
        (self.folder / "in").write_bytes(data)
        self.store("set", "key", "--input=in")
        self.assertEqual(self.served.get("key"), data)
        self.store("get", "key", "--output=out")
        self.assertEqual((self.folder / "out").read_bytes(), data)

    def test_a_prefix_is_that_of_a_prefix_store(self):
        self.store("set", "key", "1", "--prefix=jobs")
        self.assertEqual(dist.PrefixStore("jobs", self.served).get("key"), b"1")
        self.served.set("other", "2")
        self.assertEqual(self.store("keys", "jobs/").stdout, "jobs/key\n")
        self.assertEqual(set(self.store("keys").stdout.split()) & {"jobs/key", "other"}, {"jobs/key", "other"})

    def test_keys_of_a_prefix_are_not_those_of_a_longer_one(self):
        for key in ("run/1", "run/1/a", "run/1/b", "run/10/a"):
            self.served.set(key, "1")
        self.assertEqual(self.store("keys", "--prefix=run/1").stdout, "a\nb\n")
        self.assertEqual(self.store("keys", "b", "--prefix=run/1").stdout, "b\n")

    def test_brackets_are_no_part_of_an_address(self):
        told = self.trainer("store", "get", "a", f"--at=[127.0.0.1]:{self.served.port}", "--timeout=1", code=1)
        self.assertIn("'a'", told.stderr)

    def test_the_address_of_the_environment(self):
        self.served.set("key", "1")
        environment = os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self.served.port)}
        self.assertEqual(self.trainer("store", "get", "key", env=environment).stdout, "1\n")

    def test_what_does_not_come_is_named(self):
        self.served.set("there", "1")
        told = self.store("wait", "there", "a", "b", "--timeout=1", code=1)
        self.assertEqual(told.stderr, "error: 'a', 'b' not set within 1 s\n")
        self.assertEqual(self.store("delete", "a", code=1).stderr, "error: there is no key 'a'\n")
        told = self.trainer("store", "get", "a", f"--at=127.0.0.1:{free_port()}", "--timeout=1", code=1)
        self.assertIn(": nothing listens there (", told.stderr)

    def test_mistakes(self):
        self.served.set("text", "abc")
        for arguments, message in [
            (("add", "text", "1"), "'text' is 'abc', to which nothing can be added"),
            (("add", "text", "x"), "AMOUNT is a whole number, not 'x'"),
            (("set", "text"), "store set takes a VALUE or --input=PATH, one of them"),
            (("set", "text", "a", "--input=in"), "store set takes a VALUE or --input=PATH, one of them"),
        ]:
            with self.subTest(arguments):
                self.assertEqual(self.store(*arguments, code=2).stderr, f"error: {message}\n")
        for at in ["host", "host:", ":1", "host:70000", "host:1x"]:
            told = self.trainer("store", "get", "key", f"--at={at}", code=2)
            self.assertEqual(told.stderr, f"error: --at is HOST:PORT, not '{at}'\n")
        told = self.trainer("store", "get", "key", code=2)
        self.assertIn("Give --at=HOST:PORT, or set MASTER_ADDR and MASTER_PORT", told.stderr)
        self.assertEqual(self.served.get("text"), b"abc")


if __name__ == "__main__":
    runs.main()
