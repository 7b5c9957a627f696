# SPDX-License-Identifier: Apache-2.0
"""Completion in a real bash at a pseudo-terminal: what a Tab makes of a line, and what it lists."""

import os
import re
import shlex
import stat
import subprocess
import time

from tests.end_to_end import runs, terminals
from tests.end_to_end.no_processes import forbid_processes
from tests.fixed_trainer.config import CONFIG

PROMPT = "@@ "
COLUMNS = 400  # a line of candidates is not broken in a word

# A Tab lists what there is at once; C-o tells the line as it is now, which also says that what was
# typed before it has been worked off.
SETTINGS = """\
bind 'set bell-style none'
bind 'set show-all-if-ambiguous on'
bind 'set page-completions off'
bind 'set completion-query-items 0'
bind 'set enable-bracketed-paste off'
dumps=0
dump() { printf '\\n<%d:%s>\\n' "$((++dumps))" "$READLINE_LINE"; }
bind -x '"\\C-o": dump'
"""


class Shell:
    """An interactive bash that can complete the trainer's command lines."""

    def __init__(self, folder, settings, environment, before=lambda: None):
        (folder / "settings.bash").write_text(SETTINGS + settings)
        command = ["/bin/bash", "--noprofile", "--norc", "-i"]
        self.terminal = terminals.Terminal(
            command, COLUMNS, runs.TIMEOUT_SECONDS, cwd=folder,
            environment={"PS1": PROMPT, "TERM": "xterm", "INPUTRC": "/dev/null", **environment},
            before=before)
        self.terminal.type("source settings.bash\n")
        self.dumps = 0

    def line(self):
        """The line as it is, and what the terminal has shown up to here."""
        self.dumps += 1
        self.terminal.type("\x0f")
        # The prompt's return follows the answer.
        pattern = re.compile(rf"<{self.dumps}:(.*)>\r\n.*{PROMPT}", re.DOTALL)
        shown = self.terminal.read_until(pattern.search)
        return pattern.search(shown)[1], shown

    def tab(self, typed):
        """What a Tab behind this line makes of it, and the candidates that it lists."""
        self.terminal.type("\x15")  # C-u: an empty line
        line, _ = self.line()
        assert line == "", line
        self.terminal.type(typed + "\t")
        line, shown = self.line()
        shown = shown[:shown.index(f"<{self.dumps}:")]
        listed = [text for text in shown.split("\r\n")[1:] if not text.startswith(PROMPT)]
        return line, set(" ".join(listed).split())

    def execute(self, command):
        """Runs a command and returns what it prints."""
        self.terminal.type("\x15" + command + "\n")
        return self.line()[1]

    def end(self):
        self.terminal.end()


class CompletionTest(runs.RunTest):
    config = CONFIG

    def setUp(self):
        super().setUp()
        self.write("my config.yaml", CONFIG)
        self.write("old.yml", CONFIG)
        self.write("configs/base.yaml", CONFIG)
        self.write("configs/big.yaml", CONFIG)
        self.write("runs/tiny/run_0/config.yaml", CONFIG)
        # Beside the binary, a record of its starts.
        wrapper = self.write("bin/trainer", "#!/bin/bash\necho start >> $STARTS\n"
                             f"exec -a trainer {shlex.quote(str(runs.TRAINER))} \"$@\"\n")
        wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
        self.environment = {
            "HOME": str(self.folder),
            "PATH": f"{self.folder}/bin:/usr/bin:/bin",
            "STARTS": str(self.folder / "starts"),
        }
        script = subprocess.run([wrapper, "completion", "bash"], check=True, text=True,
                                stdout=subprocess.PIPE, timeout=runs.TIMEOUT_SECONDS,
                                env={**self.environment, "STARTS": "/dev/null"}).stdout
        self.write("script.bash", script)

    def shell(self, settings="source script.bash\n", environment=None, **options):
        shell = Shell(self.folder, settings, {**self.environment, **(environment or {})}, **options)
        self.addCleanup(shell.end)
        shell.line()  # which comes behind the settings
        return shell

    def starts(self):
        path = self.folder / "starts"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def completes(self, shell, cases):
        for typed, expected in cases.items():
            with self.subTest(typed):
                self.assertEqual(shell.tab(typed)[0], expected)

    def lists(self, shell, cases):
        for typed, expected in cases.items():
            with self.subTest(typed):
                self.assertEqual(shell.tab(typed)[1], expected)

    def test_commands_actions_and_flags(self):
        shell = self.shell()
        self.completes(shell, {
            "trainer comp": "trainer completion ",
            "trainer eva": "trainer evaluate ",
            "trainer config ex": "trainer config explain ",
            "trainer config print --m": "trainer config print --minimal ",
            "trainer config print tiny.yaml --js": "trainer config print tiny.yaml --json ",
            "trainer --v": "trainer --version ",
            "trainer checkpoint export runs out --d":
                "trainer checkpoint export runs out --dtype=",
            "trainer checkpoint export runs out --dtype=b":
                "trainer checkpoint export runs out --dtype=bf16 ",
            "trainer checkpoint export runs out --dtype b":
                "trainer checkpoint export runs out --dtype bf16 ",
            "trainer checkpoint list --l": "trainer checkpoint list --last=",
            "trainer config new --out": "trainer config new --output=",
            "trainer config new --output=tin": "trainer config new --output=tiny.yaml ",
            "trainer config new --output conf": "trainer config new --output configs/",
            "trainer config new --output x optimizer=ro": "trainer config new --output x optimizer=roll ",
            "trainer train --h": "trainer train --help ",
            "trainer help conf": "trainer help config ",
            "trainer help config pr": "trainer help config print ",
            "trainer nonsense more": "trainer nonsense more",
            "trainer config nonsense ": "trainer config nonsense ",
        })
        self.lists(shell, {"trainer completion ": {"bash", "table"},
                           "trainer config print --": {"--help", "--minimal", "--json"}})
        self.assertLessEqual({"train", "config", "list", "tiny.yaml", "configs/"},
                             shell.tab("trainer ")[1])

    def test_files(self):
        shell = self.shell()
        self.completes(shell, {
            "trainer ti": "trainer tiny.yaml ",
            "trainer ol": "trainer old.yml ",
            "trainer te": "trainer te",  # text.txt is no config
            "trainer train configs/bi": "trainer train configs/big.yaml ",
            "trainer config print ./ti": "trainer config print ./tiny.yaml ",
            "trainer config diff tiny.yaml conf": "trainer config diff tiny.yaml configs/",
            "trainer ~/ti": "trainer ~/tiny.yaml ",
            f"trainer {self.folder}/ti": f"trainer {self.folder}/tiny.yaml ",
            "trainer tiny.yaml configs/ba": "trainer tiny.yaml configs/base.yaml ",
            "trainer conf": "trainer config",
            "trainer evaluate ru": "trainer evaluate runs/",
            "trainer evaluate runs/tiny/": "trainer evaluate runs/tiny/run_0/",
            "trainer evaluate ti": "trainer evaluate ti",  # no folder
            "trainer evaluate runs/tiny/run_0 training.max_sa":
                "trainer evaluate runs/tiny/run_0 training.max_samples=",
        })
        self.lists(shell, {"trainer conf": {"config", "configs/"},
                           "trainer train configs/b": {"base.yaml", "big.yaml"}})

    def test_quoting(self):
        self.write("list of.yaml", CONFIG)
        shell = self.shell()
        self.completes(shell, {
            "trainer my": r"trainer my\ config.yaml ",
            r"trainer my\ co": r"trainer my\ config.yaml ",
            "trainer train 'my": "trainer train 'my config.yaml' ",
            'trainer train "my co': 'trainer train "my config.yaml" ',
            r"trainer list\ ": r"trainer list\ of.yaml ",
            r"trainer my\ config.yaml optimizer.lr": r"trainer my\ config.yaml optimizer.lr=",
            "trainer tiny.yaml 'optimizer=si": "trainer tiny.yaml 'optimizer=sign' ",
            'trainer tiny.yaml optimizer="si': 'trainer tiny.yaml optimizer="sign" ',
            "trainer 'tiny.yaml' checkpoint.res": "trainer 'tiny.yaml' checkpoint.resume=",
            'trainer tiny.yaml "optimizer."lr': "trainer tiny.yaml optimizer.lr=",
            "trainer tiny.yaml optimizer='si'": "trainer tiny.yaml optimizer=sign ",
            "trainer tiny.yaml task.data.path=my": r"trainer tiny.yaml task.data.path=my\ config.yaml ",
        })
        self.lists(shell, {"trainer li": {"list", "list\\", "of.yaml"}})

    def test_keys_a_section_at_a_time(self):
        shell = self.shell()
        self.completes(shell, {
            "trainer tiny.yaml traini": "trainer tiny.yaml training.",
            "trainer tiny.yaml optimizer.lr": "trainer tiny.yaml optimizer.lr=",
            "trainer tiny.yaml task.data.lo": "trainer tiny.yaml task.data.loader.",
            "trainer tiny.yaml task.data.loader.num": "trainer tiny.yaml task.data.loader.num_workers=",
            "trainer tiny.yaml training.max_steps=3 model.n_la":
                "trainer tiny.yaml training.max_steps=3 model.n_layer=",
            "trainer train tiny.yaml +optimizer.lr": "trainer train tiny.yaml +optimizer.lr=",
            "trainer train tiny.yaml ++optimizer.lr": "trainer train tiny.yaml ++optimizer.lr=",
            "trainer train tiny.yaml ~optimizer.lr": "trainer train tiny.yaml ~optimizer.lr ",
            "trainer config new model.n_la": "trainer config new model.n_layer=",
            "trainer config explain optimizer.lr": "trainer config explain optimizer.lr ",
            "trainer tiny.yaml nonsense.l": "trainer tiny.yaml nonsense.l",
            "traini": "traini",
        })
        self.lists(shell, {
            "trainer tiny.yaml optim": {"optimizer.", "optimizer=", "optimizers."},
            "trainer tiny.yaml ~valid": {"~validation", "~validation."},
        })
        # Values of all classes: which one a file chooses is not known.
        listed = shell.tab("trainer tiny.yaml optimizer.")[1]
        self.assertLessEqual({"optimizer.name=", "optimizer.momentum=", "optimizer.betas="}, listed)
        listed = shell.tab("trainer tiny.yaml ")[1]
        self.assertLessEqual({"training.", "exp_dir=", "parallel.", "anomaly."}, listed)
        self.assertNotIn("text.txt", listed)

    def test_values(self):
        shell = self.shell()
        self.completes(shell, {
            "trainer tiny.yaml optimizer=si": "trainer tiny.yaml optimizer=sign ",
            "trainer tiny.yaml optimizer.name=ro": "trainer tiny.yaml optimizer.name=roll ",
            "trainer tiny.yaml name=supervised_": "trainer tiny.yaml name=supervised_debug ",
            "trainer tiny.yaml model=tower-12": "trainer tiny.yaml model=tower-124m ",
            "trainer tiny.yaml ++checkpoint.resume=a": "trainer tiny.yaml ++checkpoint.resume=auto ",
            "trainer tiny.yaml use_double_weight_precision=t":
                "trainer tiny.yaml use_double_weight_precision=true ",
            "trainer tiny.yaml task.data.path=te": "trainer tiny.yaml task.data.path=text.txt ",
            "trainer tiny.yaml task.data.path=conf": "trainer tiny.yaml task.data.path=configs/",
            "trainer tiny.yaml optimizer.lr=": "trainer tiny.yaml optimizer.lr=",
        })
        self.lists(shell, {
            "trainer tiny.yaml checkpoint.resume=": {"auto", "if_any", "never"},
            "trainer tiny.yaml optimizer=m": {"mean", "means"},
            "trainer list models ": set(),
            "trainer tiny.yaml task.data.path=configs/": {"base.yaml", "big.yaml"},
        })
        self.completes(shell, {"trainer list mod": "trainer list models ",
                               "trainer list models ": "trainer list models tower ",
                               "trainer list models tower ": "trainer list models tower "})

    def test_other_word_breaks(self):
        shell = self.shell("source script.bash\nCOMP_WORDBREAKS=${COMP_WORDBREAKS//[=:]/}\n")
        self.completes(shell, {
            "trainer tiny.yaml optimizer=si": "trainer tiny.yaml optimizer=sign ",
            "trainer tiny.yaml optimizer.lr": "trainer tiny.yaml optimizer.lr=",
            "trainer tiny.yaml task.data.path=te": "trainer tiny.yaml task.data.path=text.txt ",
        })
        self.lists(shell, {"trainer tiny.yaml optimizer=m": {"optimizer=mean", "optimizer=means"}})

    def test_a_colon_breaks_words_too(self):
        self.write("a:b.yaml", CONFIG)
        self.completes(self.shell(), {"trainer a:": "trainer a:b.yaml "})

    def test_within_a_line_what_is_before_the_cursor_counts(self):
        shell = self.shell()
        # Two words back, and one character.
        self.assertEqual(shell.tab("trainer tiny.yaml optimizer.lr a=b\x1bb\x1bb\x02")[0],
                         "trainer tiny.yaml optimizer.lr= a=b")

    def test_a_shell_of_other_habits(self):
        shell = self.shell("source script.bash\nset -fu\nshopt -s failglob\nalias mv='mv -i'\n"
                           "IFS=x\n")
        self.completes(shell, {
            "trainer ti": "trainer tiny.yaml ",
            "trainer nosuch": "trainer nosuch",
            "trainer tiny.yaml optimizer=si": "trainer tiny.yaml optimizer=sign ",
            "trainer config ex": "trainer config explain ",
        })
        self.assertIn("failglob\ton", shell.execute("shopt failglob").replace(" ", ""))

    def test_it_is_found_however_it_is_called(self):
        shell = self.shell()
        self.completes(shell, {"bin/trainer comp": "bin/trainer completion ",
                               "~/bin/trainer comp": "~/bin/trainer completion ",
                               "X=1 trainer comp": "X=1 trainer completion ",
                               "true; trainer comp": "true; trainer completion "})
        self.assertEqual(self.starts(), 1)
        elsewhere = self.shell(environment={"PATH": "/usr/bin:/bin"})
        self.completes(elsewhere, {"trainer comp": "trainer completion "})

    def test_as_the_readme_says(self):
        shell = self.shell("source <(trainer completion bash)\n")
        self.assertEqual(self.starts(), 1)
        self.completes(shell, {"trainer optim": "trainer optim", "trainer comp": "trainer completion "})
        self.assertEqual(shell.execute("shopt -q nullglob || echo un''set").count("unset"), 1)

    def test_the_binary_is_asked_once_for_each_build(self):
        shell = self.shell()
        self.assertEqual(self.starts(), 0)
        for _ in range(3):
            shell.tab("trainer ti")
        self.assertEqual(self.starts(), 1)
        again = self.shell()
        again.tab("trainer ti")
        self.assertEqual(self.starts(), 1)
        # Another build, were it older than the one before.
        os.utime(self.folder / "bin/trainer", (1, 1))
        again.tab("trainer ti")
        again.tab("trainer ti")
        shell.tab("trainer ti")
        self.assertEqual(self.starts(), 2)
        kept = list((self.folder / ".cache/phalanx/completion").iterdir())
        self.assertEqual(len(kept), 1, kept)

    def test_a_binary_that_does_not_answer_completes_nothing(self):
        self.write("bin/trainer", "#!/bin/bash\nexit 1\n")
        self.completes(self.shell(), {"trainer comp": "trainer comp"})
        self.assertEqual(list((self.folder / ".cache/phalanx/completion").iterdir()), [])

    def test_a_tab_starts_no_process_and_answers_at_once(self):
        self.shell().tab("trainer ti")  # which makes the table
        shell = self.shell(before=lambda: forbid_processes(kill=False))
        self.assertIn("Operation not permitted", shell.execute("echo $(echo forked)"))
        self.completes(shell, {
            "trainer comp": "trainer completion ",
            "trainer ti": "trainer tiny.yaml ",
            "trainer tiny.yaml optimizer.lr": "trainer tiny.yaml optimizer.lr=",
            "trainer tiny.yaml optimizer=si": "trainer tiny.yaml optimizer=sign ",
            "trainer tiny.yaml task.data.path=te": "trainer tiny.yaml task.data.path=text.txt ",
        })
        seconds = []
        for _ in range(20):
            shell.terminal.type("\x15")
            shell.line()
            shell.terminal.type("trainer tiny.yaml checkpoint.resume=a")
            shell.terminal.read_until(lambda shown: shown.endswith("resume=a"))
            began = time.monotonic()
            shell.terminal.type("\t")
            shell.terminal.read_until(lambda shown: shown.endswith("uto "))
            seconds.append(time.monotonic() - began)
        seconds.sort()
        print(f"a Tab: least {1e3 * seconds[0]:.1f} ms, median {1e3 * seconds[10]:.1f} ms, "
              f"most {1e3 * seconds[-1]:.1f} ms", flush=True)
        self.assertLess(seconds[0], 0.05)


if __name__ == "__main__":
    runs.main()
