"""Bad input: one line that names the value, exit 2, nothing started, nothing left."""

import os
import socket

from support import LIMIT, JobTest, main


class Usage(JobTest):
    def refused(self, *words, environment=None, code=2):
        got, one = self.run_lrun(*words, environment=environment)
        self.assertEqual(got, code, one.text())
        self.assertEqual(len(one.err), 1, one.text())
        self.assertEqual(one.out, [], one.text())
        return one.err[0]

    def test_no_words_print_usage(self):
        self.assertIn("usage", self.refused())

    def test_impossible_nodes(self):
        for value in ("0", "2:1", "abc", "1:", ":2", "2:20:30"):
            self.assertIn(f"--nnodes='{value}'", self.refused(f"--nnodes={value}", "true"))

    def test_impossible_workers(self):
        for value in ("-1", "0", "foo"):
            self.assertIn(f"--nproc-per-node='{value}'", self.refused("--nproc", value, "true"))

    def test_unknown_option_names_the_nearest(self):
        self.assertIn("did you mean --nnodes?", self.refused("--nnoods=2", "true"))

    def test_program_not_found(self):
        self.assertIn("'no-such-program'", self.refused("no-such-program"))
        self.assertIn("does not exist", self.refused("./no-such-program"))

    def test_program_not_executable(self):
        path = os.path.join(self.folder, "plain")
        with open(path, "w", encoding="utf-8") as file:
            file.write("x")
        self.assertIn("chmod +x", self.refused(path))

    def test_no_program(self):
        self.assertIn("no program", self.refused("--nproc=2"))

    def test_bad_port(self):
        for port in ("70000", "x", "-1"):
            self.assertIn(
                f"127.0.0.1:{port}", self.refused(f"--rdzv-endpoint=127.0.0.1:{port}", "true")
            )

    def test_variables_are_checked_like_options(self):
        self.assertIn("PET_NNODES='2:1'", self.refused("true", environment={"PET_NNODES": "2:1"}))

    def test_bad_streams(self):
        for value in ("4", "x", "0:4"):
            self.assertIn(value, self.refused(f"--tee={value}", "true"))

    def test_log_folder_that_is_a_file(self):
        path = os.path.join(self.folder, "file")
        with open(path, "w", encoding="utf-8") as file:
            file.write("x")
        self.assertIn(path, self.refused(f"--log-dir={path}", "true"))

    # B015: a taken port says who and which option.
    def test_taken_ports(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.assertIn("--metrics-port", self.refused(f"--metrics-port={port}", "true"))
            line = self.refused("rendezvous", f"--rdzv-endpoint=127.0.0.1:{port}")
            self.assertIn(str(port), line)

    # B078: what was asked for and is not there is an error, never a silent substitute.
    def test_help_and_version(self):
        code, one = self.run_lrun("--help")
        self.assertEqual(code, 0)
        self.assertIn("--nproc-per-node", "\n".join(one.out))
        code, one = self.run_lrun("--version")
        self.assertEqual(code, 0)
        self.assertRegex(one.out[0], r"^lrun \d+\.\d+\.\d+")

    # B076: everything after the program reaches it verbatim.
    def test_words_reach_the_program(self):
        code, one = self.run_lrun("echo", "--nnodes", "7", "--help", "-r", "9")
        self.assertEqual(code, 0, one.text())
        self.assertEqual(one.out, ["--nnodes 7 --help -r 9"])

    def test_status_without_job(self):
        code, one = self.run_lrun("status", limit=LIMIT)
        self.assertEqual(code, 3, one.text())
        self.assertEqual(len(one.err), 1, one.text())
        code, one = self.run_lrun("status", "--json", "--rdzv-id=none-such")
        self.assertEqual(code, 3, one.text())
        self.assertIn('"error"', "\n".join(one.out))


if __name__ == "__main__":
    main()
