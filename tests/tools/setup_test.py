"""Shows that what CMake refuses to go without is what `tools/setup build` installs. The README's
first command installs nothing else, so a package that stands in another group is missing on a bare
machine alone, where none of us builds."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
REQUIRE = re.compile(r'^millrace_(?:require(?:_module)?\(\S+ "?([^")]+)"?\)'
                     r'|option\(\w+ .*DEBIAN (\S+))', re.MULTILINE)


def required():
    """The Debian packages that the sentences of cmake/packages.cmake would name."""
    files = [ROOT / "CMakeLists.txt", *sorted((ROOT / "cmake").glob("*.cmake"))]
    found = [package or option for file in files
             for package, option in REQUIRE.findall(file.read_text())]
    return {package for packages in found for package in packages.split()}


def installed_to_build():
    group = re.search(r"^build=\((.*?)^\)", (ROOT / "tools/setup").read_text(),
                      re.MULTILINE | re.DOTALL)
    return set(group.group(1).split())


class SetupTest(unittest.TestCase):
    def test_each_way_to_require_a_package_is_seen(self):
        self.assertLessEqual({"libfmt-dev", "libbrotli-dev", "libgmock-dev", "liburing-dev"},
                             required())

    def test_all_that_cmake_requires_is_installed_to_build(self):
        self.assertEqual(set(), required() - installed_to_build())


if __name__ == "__main__":
    unittest.main()
