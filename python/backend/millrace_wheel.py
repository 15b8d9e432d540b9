"""Makes the wheel of Millrace (PEP 517), from the source tree and what `make wheel` has built.

The wheel holds the package, the native library and program with the shared libraries that they need
(tools/bundle), and works for every Python from 3.11 on, because the package reaches the library
through ctypes. It needs no compiler and nothing from a package index.
"""

from __future__ import annotations

import base64
import hashlib
import os
import pathlib
import platform
import re
import subprocess
import tomllib
import zipfile

HERE = pathlib.Path(__file__).resolve().parent.parent
ROOT = HERE.parent
BUILT = ROOT / "build" / "release"
STAGE = ROOT / "build" / "wheel"

Settings = dict[str, object] | None


def version() -> str:
    """The version of the whole project, which CMakeLists.txt has."""
    text = (ROOT / "CMakeLists.txt").read_text()
    found = re.search(r"^project\(millrace VERSION ([0-9.]+)", text, re.MULTILINE)
    if not found:
        raise SystemExit(f"millrace: {ROOT}/CMakeLists.txt names no version")
    return found.group(1)


def tag() -> str:
    """For any Python, on any Linux whose glibc is not older than the one of this machine."""
    _, glibc = platform.libc_ver()
    return f"py3-none-manylinux_{glibc.replace('.', '_')}_{platform.machine()}"


def metadata() -> str:
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {version()}",
             f"Summary: {project['description']}", f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {dependency}" for dependency in project["dependencies"]]
    for extra, dependencies in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {name}; extra == "{extra}"' for name in dependencies]
    lines.append("Description-Content-Type: text/markdown")
    readme = HERE / str(project["readme"])
    return "\n".join(lines) + "\n\n" + readme.read_text()


def native_files() -> list[tuple[str, pathlib.Path]]:
    """Names in the wheel and files of the program, the library, and what they need."""
    built = [BUILT / "millrace", BUILT / "libmillrace.so"]
    missing = [file.name for file in built if not file.exists()]
    if missing:
        raise SystemExit(f"millrace: {' and '.join(missing)} not built. "
                         f"Run `make wheel` in {ROOT} first; it also writes a wheel to build/dist.")
    subprocess.run([ROOT / "tools" / "bundle", "--in-process", STAGE, *built], check=True, cwd=ROOT)
    files = sorted(path for path in STAGE.rglob("*") if path.is_file())
    return [(f"millrace/_bundle/{path.relative_to(STAGE)}", path) for path in files]


def package_files() -> list[tuple[str, pathlib.Path]]:
    source = HERE / "src"
    files = sorted((source / "millrace").glob("*.py")) + [source / "millrace" / "py.typed"]
    return [(str(path.relative_to(source)), path) for path in files]


class Wheel:
    """A wheel that is being written. Same contents give the same bytes."""

    def __init__(self, directory: str, wheel_tag: str) -> None:
        self.name = f"millrace-{version()}-{wheel_tag}.whl"
        self._info = f"millrace-{version()}.dist-info"
        self._tag = wheel_tag
        self._records: list[str] = []
        self._archive = zipfile.ZipFile(pathlib.Path(directory) / self.name, "w",
                                        zipfile.ZIP_DEFLATED)

    def add(self, name: str, content: bytes, mode: int = 0o644) -> None:
        entry = zipfile.ZipInfo(name)
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self._archive.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self._records.append(f"{name},sha256={digest},{len(content)}")

    def finish(self) -> str:
        self.add(f"{self._info}/METADATA", metadata().encode())
        self.add(f"{self._info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: millrace ({version()})\n"
                 f"Root-Is-Purelib: false\nTag: {self._tag}\n".encode())
        record = "\n".join([*self._records, f"{self._info}/RECORD,,"]) + "\n"
        self._archive.writestr(zipfile.ZipInfo(f"{self._info}/RECORD"), record)
        self._archive.close()
        return self.name


def build_wheel(wheel_directory: str, config_settings: Settings = None,
                metadata_directory: str | None = None) -> str:
    """Writes the wheel; returns its name."""
    wheel = Wheel(wheel_directory, tag())
    for name, path in package_files() + native_files():
        wheel.add(name, path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)
    return wheel.finish()


def build_editable(wheel_directory: str, config_settings: Settings = None,
                   metadata_directory: str | None = None) -> str:
    """Points at this source tree, whose package takes the library from build/release."""
    wheel = Wheel(wheel_directory, tag())
    wheel.add("millrace.pth", f"{HERE / 'src'}\n".encode())
    return wheel.finish()


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """The sources of the library are the whole repository."""
    raise SystemExit("millrace: there is no source distribution; build a wheel from a checkout")
