"""Shows that tools/check_style.py goes red on each rule, and stays quiet on good code."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import check_style  # noqa: E402, the path must be set first


def function_of(lines, head="int long_one(int a,\n             int b) {"):
    body = "  a += b;\n" * (lines - head.count("\n") - 2)
    return f"{head}\n{body}}}\n"


class CheckStyleTest(unittest.TestCase):
    def setUp(self):
        self.tree = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def check(self, path, text):
        file = self.tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        """Returns the exit status and what was written for the reader."""
        with contextlib.redirect_stderr(io.StringIO()) as stderr:
            status = check_style.main([self.tree])
        return status, stderr.getvalue()

    def assert_fine(self, path, text):
        status, problems = self.check(path, text)
        self.assertEqual((status, problems), (0, ""))

    def assert_refused(self, path, text, message):
        status, problems = self.check(path, text)
        self.assertEqual(status, 1)
        self.assertIn(message, problems)

    def test_good_code_is_fine(self):
        self.assert_fine("src/base/a.h", "#pragma once\nint f();\n// TODO(anna): explain.\n")

    def test_long_line(self):
        self.assert_fine("src/base/a.cc", "//" + "x" * 98 + "\n")
        self.assert_refused("src/base/a.cc", "//" + "x" * 99 + "\n", "src/base/a.cc:1: 101 columns")

    def test_long_file(self):
        self.assert_fine("src/base/a.cc", ";\n" * 600)
        self.assert_refused("src/base/a.cc", ";\n" * 601, "601 lines, the most is 600")
        self.assert_refused("src/base/a.h", "#pragma once\n" + ";\n" * 400, "the most is 400")

    def test_vague_names(self):
        for path in ("src/utils/a.cc", "src/base/string_util.cc", "src/base/pool_impl.cc",
                     "tests/common/a.cc", "src/base/helpers.cc"):
            with self.subTest(path):
                self.assertIn("says nothing", self.check(path, "")[1])
        for path in ("src/base/manage.cc", "src/base/simple.cc", "src/base/utility_bill.cc"):
            self.assertNotIn(path, self.check(path, "")[1])

    def test_note_without_owner(self):
        self.assert_refused("src/base/a.cc", "int a;  // TODO: later\n", "a.cc:1: a note without")

    def test_header_without_pragma(self):
        self.assert_refused("src/base/a.h", "int f();\n", "#pragma once")

    def test_long_function(self):
        self.assert_fine("src/base/a.cc", "namespace millrace {\n" + function_of(70) + "}\n")
        self.assert_refused("src/base/a.cc", "namespace millrace {\n\n" + function_of(71) + "}\n",
                            "src/base/a.cc:3: long_one has 71 lines")

    def test_long_method_inside_a_class(self):
        method = function_of(71, "  void run() const override {")
        self.assert_refused("src/base/a.cc", f"class A final : public B {{\n{method}}};\n",
                            "a.cc:2: run has 71 lines")

    def test_lambda_counts_for_its_function(self):
        body = "  auto f = [](int a) {\n" + "    ++a;\n" * 67 + "  };\n"
        self.assert_refused("src/base/a.cc", "void outer() {\n" + body + "}\n",
                            "outer has 71 lines")

    def test_long_class_and_namespace_are_fine(self):
        self.assert_fine("src/base/a.cc", "class A {\n" + "  int f();\n" * 100 + "};\n")
        self.assert_fine("src/base/a.cc", "namespace {\n" + "int f();\n" * 100 + "}\n")

    def test_braces_in_text_do_not_count(self):
        text = 'void f() {\n  g("}", \'}\', R"x(}})x", 1\'000);  // }\n' + "  g();\n" * 70 + "}\n"
        self.assert_refused("src/base/a.cc", text, "f has 73 lines")


if __name__ == "__main__":
    unittest.main()
