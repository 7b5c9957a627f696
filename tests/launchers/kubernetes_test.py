# SPDX-License-Identifier: Apache-2.0
"""Checks the manifests of `trainer launch kubernetes` by the schemas of Kubernetes, and runs their pods' commands."""

import kubernetes_validate
import yaml

from tests.end_to_end import runs
from tests.launchers.programs import LauncherTest
from tests.ports import free_port

NEEDED = ["--image=registry/trainer:1", "--claim=runs"]
KUBECTL = """#!/bin/sh
echo "$@" > kubectl_arguments
cat > submitted.yaml
echo job.batch/my created
exit 3
"""
VERSIONS = ("1.31", "1.37")


class KubernetesTest(LauncherTest):

    def manifest(self, *arguments):
        text = self.launch(runs.TRAINER, "launch", "kubernetes", "tiny.yaml", *arguments, "--dry-run")
        return list(yaml.safe_load_all(text))

    def validate(self, documents):
        for document in documents:
            for version in VERSIONS:
                kubernetes_validate.validate(document, version, strict=True)

    def test_manifests_are_what_kubernetes_takes(self):
        for flags in ([], ["--nodes=8", "--gpus-per-node=4", "--cpus-per-node=16", "--mem=64Gi", "--max-restarts=9"],
                      ["exp_name='2026 o\"clock $(HOME)'", "exp_dir='/data/$(date) \"it\"'", "--mount=/data dir",
                       "--trainer=/opt/a b/trainer"]):
            with self.subTest(flags):
                documents = self.manifest(*NEEDED, *flags)
                self.validate(documents)
                self.assertEqual([document["kind"] for document in documents], ["Service", "ConfigMap", "Job"])
        job = documents[-1]
        job["spec"]["completionmode"] = "Indexed"
        with self.assertRaises(kubernetes_validate.ValidationError):
            self.validate([job])

    def test_what_is_given_survives_literally(self):
        *_, job = self.manifest(*NEEDED, "--mount=/it's \"data\"", "--trainer=/opt/$(a) b/trainer", "--gpus-per-node=4")
        container, = job["spec"]["template"]["spec"]["containers"]
        self.assertEqual(container["workingDir"], "/it's \"data\"")
        self.assertEqual(container["command"][0], "/opt/$$(a) b/trainer")
        self.assertEqual(container["resources"]["limits"], {"nvidia.com/gpu": "4"})
        self.assertEqual(container["command"][-1], "launcher.processes=4")

    def test_without_a_number_of_ranks_the_configs_counts(self):
        _, config, job = self.manifest(*NEEDED, "launcher.processes=3")
        self.assertEqual(yaml.safe_load(config["data"]["config.yaml"])["launcher"]["processes"], 3)
        container, = job["spec"]["template"]["spec"]["containers"]
        self.assertEqual(container["command"][3:], ["exp_dir=runs/" + job["metadata"]["name"]])

    def test_pods_train_as_ranks_of_one_host(self):
        expected = self.expected(4)
        service, config, job = self.manifest(*NEEDED, "--nodes=2", "--ntasks-per-node=2", "--job-name=my")
        self.write("config.yaml", config["data"]["config.yaml"])
        container, = job["spec"]["template"]["spec"]["containers"]
        told = {variable["name"]: variable["value"] for variable in container["env"]}
        self.assertEqual(told.pop("MASTER_ADDR"), f"my-0.{service['metadata']['name']}")
        self.assertEqual(container["command"][:3], ["trainer", "train", "/etc/phalanx/config.yaml"])
        command = [runs.TRAINER, "train", "config.yaml", *container["command"][3:]]
        place = {**told, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        pods = [self.start_launcher(*command, env={**place, "JOB_COMPLETION_INDEX": str(index)})
                for index in range(job["spec"]["completions"])]
        outputs = [pod.communicate(timeout=runs.TIMEOUT_SECONDS)[0] for pod in pods]
        self.assertEqual([pod.returncode for pod in pods], [0, 0], "".join(outputs))
        self.assertEqual(self.losses("runs/my"), expected)
        start, = self.starts("runs/my")
        self.assertEqual((start["launcher"], start["world_size"]), ("kubernetes", 4))

    def test_kubectl_gets_the_manifest_and_its_exit_code_is_the_commands(self):
        self.write("bin/kubectl", KUBECTL).chmod(0o755)
        output = self.launch(runs.TRAINER, "launch", "kubernetes", "tiny.yaml", *NEEDED, code=3,
                             env={"PATH": f"{self.folder}/bin:/usr/bin:/bin"})
        self.assertIn("job.batch/my created", output)
        self.assertEqual((self.folder / "kubectl_arguments").read_text(), "apply -f -\n")
        submitted = list(yaml.safe_load_all((self.folder / "submitted.yaml").read_text()))
        self.assertEqual(submitted, self.manifest(*NEEDED))

    def test_a_mistake_submits_nothing(self):
        self.write("bin/kubectl", KUBECTL).chmod(0o755)
        for arguments, message in [
            (["--claim=runs"], "option --image is missing: name an image that holds the trainer"),
            (["--image=trainer"], "option --claim is missing: a run's folder must outlive its pods"),
            ([*NEEDED, "--job-name=My Run"], "--job-name='My Run': a name in Kubernetes has"),
            ([*NEEDED, "--mount=data"], "--mount='data': a folder in the pods"),
            ([*NEEDED, "training.max_stepps=4"], "training.max_stepps"),
        ]:
            with self.subTest(arguments):
                output = self.launch(runs.TRAINER, "launch", "kubernetes", "tiny.yaml", *arguments, code=2,
                                     env={"PATH": f"{self.folder}/bin:/usr/bin:/bin"})
                self.assertIn(message, output)
        self.assertFalse((self.folder / "submitted.yaml").exists())

    def test_without_kubectl_it_says_so(self):
        output = self.launch(runs.TRAINER, "launch", "kubernetes", "tiny.yaml", *NEEDED, code=2,
                             env={"PATH": str(self.folder)})
        self.assertIn("kubectl cannot be started: No such file or directory", output)


if __name__ == "__main__":
    runs.main()
