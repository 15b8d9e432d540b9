"""Shows that tools/check_layers.py goes red on each kind of forbidden include, and only then."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import check_layers  # noqa: E402, the path must be set first


class CheckLayersTest(unittest.TestCase):
    def setUp(self):
        self.tree = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        # The real rules: this test also says that the house stands as the design draws it.
        self.write("cmake/layers.txt", (ROOT / "cmake/layers.txt").read_text())
        (self.tree / "src").mkdir()

    def write(self, path, text):
        (self.tree / path).parent.mkdir(parents=True, exist_ok=True)
        (self.tree / path).write_text(text)

    def check(self):
        """Returns the exit status and what was written for the reader."""
        with contextlib.redirect_stderr(io.StringIO()) as stderr:
            status = check_layers.main([self.tree])
        return status, stderr.getvalue()

    def assert_refused(self, path, include, *words):
        self.write(path, f'// A comment.\n#include <vector>\n#include "{include}"\n')
        status, problems = self.check()
        self.assertEqual(status, 1, f"{path} may not include {include}")
        self.assertIn(f'{path}:3: includes "{include}"', problems)
        for word in words:
            self.assertIn(word, problems)

    def assert_allowed(self, path, include):
        self.write(path, f'#include "{include}"\n')
        status, problems = self.check()
        self.assertEqual((status, problems), (0, ""))

    def test_empty_tree_is_fine(self):
        self.assertEqual(self.check()[0], 0)

    def test_own_layer_and_lower_layers_are_fine(self):
        self.assert_allowed("src/base/a.cc", "base/a.h")
        self.assert_allowed("src/platform/a.cc", "metrics/a.h")
        self.assert_allowed("src/objectstore/s3/a.cc", "platform/a.h")
        self.assert_allowed("src/vfs/a.cc", "dataset/a.h")

    def test_upward_include_is_refused_with_advice(self):
        self.assert_refused("src/base/a.h", "platform/file.h", "may include only nothing else",
                            "interface in base")

    def test_base_knows_no_metrics(self):
        self.assert_refused("src/base/a.cc", "metrics/registry.h")

    def test_siblings_are_refused(self):
        self.assert_refused("src/dataset/a.cc", "volume/a.h")
        self.assert_refused("src/bucket/a.cc", "dataset/a.h")
        self.assert_refused("src/metastore/a.cc", "cache/a.h")

    def test_nothing_but_main_includes_the_command_line(self):
        self.assert_refused("src/app/a.cc", "cli/command.h")

    def test_main_may(self):
        self.assert_allowed("src/main.cc", "cli/command.h")

    def test_include_that_is_no_path_from_src_is_refused(self):
        self.assert_refused("src/base/a.cc", "status.h", "not a path from src/")
        self.assert_refused("src/base/a.cc", "../platform/file.h", "not a path from src/")

    def test_spaces_do_not_hide_an_include(self):
        self.write("src/base/a.cc", '  #  include   "cli/a.h"\n')
        self.assertEqual(self.check()[0], 1)

    def test_unknown_folder_is_refused(self):
        self.write("src/misc/a.cc", "")
        self.assertIn("'misc' is no layer", self.check()[1])


if __name__ == "__main__":
    unittest.main()
