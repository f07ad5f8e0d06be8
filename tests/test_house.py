"""Rules of the house that no single module can check (docs/architecture.md)."""

import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import goodput
from goodput.cli.app import build
from goodput.cli.registry import COMMANDS, GROUPS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "goodput"
HEAVY = {"duckdb", "jax", "numba", "numpy", "ray", "rich", "torch"}
LONGEST_FILE = 800
HELP_LINE = 60


def loaded_by(code: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter holds after running code."""
    script = f"{code}\nimport sys; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.splitlines()[-1].split())


HELP = """
import sys
from goodput.cli import main
try:
    main({arguments})
except SystemExit as stop:
    assert stop.code == 0, stop.code
"""


def test_import_goodput_is_light() -> None:
    assert not loaded_by("import goodput") & HEAVY


@pytest.mark.parametrize("group", ["", *GROUPS])
def test_help_is_light(group: str) -> None:
    loaded = loaded_by(HELP.format(arguments=[*group.split(), "--help"]))
    assert not loaded & (HEAVY | {"msgspec", "httptools", "uvloop", "asyncio"})


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_is_light(command: str) -> None:
    assert not loaded_by(HELP.format(arguments=[*command.split(), "--help"])) & HEAVY


@pytest.mark.parametrize("name", COMMANDS)
def test_command_has_json_and_help_of_80_columns(name: str) -> None:
    context = click.Context(build(), info_name="goodput", max_content_width=80)
    command: click.Command | None = context.command
    for word in name.split():
        assert isinstance(command, click.Group)
        command = command.get_command(context, word)
        assert command is not None
        context = click.Context(
            command, info_name=word, parent=context, max_content_width=80, terminal_width=80
        )
    assert "--json" in {option for param in context.command.params for option in param.opts}
    text = context.get_help()
    assert max(map(len, text.splitlines())) <= 80
    assert "Exit codes" in text


def test_registry_lines_are_short_sentences() -> None:
    for entry in COMMANDS.values():
        assert len(entry.help) <= HELP_LINE
        assert entry.help.endswith(".")


def isort_key(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest, as ruff (RUF022) sorts them."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2, name)


def test_every_package_has_a_sorted_importable_face() -> None:
    faces = [
        module.name for module in pkgutil.walk_packages([str(SOURCE)], "goodput.") if module.ispkg
    ]
    assert faces
    for face in ["goodput", *faces]:
        module = importlib.import_module(face)
        names = getattr(module, "__all__", [])
        assert list(names) == sorted(names, key=isort_key), f"{face}.__all__ is not sorted"
        for name in names:
            assert getattr(module, name) is not None, f"{face}.{name}"


def test_every_folder_of_code_is_a_package() -> None:
    folders = {path.parent for path in SOURCE.rglob("*.py")}
    bare = {folder.name for folder in folders if not (folder / "__init__.py").exists()}
    assert bare <= {"inject"}  # its sitecustomize is found through PYTHONPATH, not imported


def test_no_file_is_too_long() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for folder in ("src", "tests", "benchmarks", "examples", "tools")
        for path in (ROOT / folder).rglob("*.py")
    }
    assert {path: n for path, n in lengths.items() if n > LONGEST_FILE} == {}


def test_test_files_have_unique_names() -> None:
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


def commands_in(text: str) -> list[list[str]]:
    """Return the words of every `goodput ...` line in the code blocks of a page."""
    blocks = re.findall(
        r"^```(?:bash|sh|console)?\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE
    )
    lines = [line.strip().removeprefix("$ ") for block in blocks for line in block.splitlines()]
    return [line.split() for line in lines if line.startswith("goodput ")]


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CONTRIBUTING.md",
        *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md"))),
    ],
)
def test_commands_on_a_page_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for words in commands_in(text):
        name = " ".join(words[1:3]) if words[1] in GROUPS else words[1]
        assert name in COMMANDS or name.startswith("-"), f"{page}: {' '.join(words)}"
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`make ([a-z]+)`", text):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), f"{page}: make {target}"


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md"))),
    ],
)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (ROOT / page).parent.joinpath(target).exists(), f"{page}: {target}"


def test_pages_named_in_code_exist() -> None:
    named = {
        (page, str(path.relative_to(ROOT)))
        for folder in ("src", "benchmarks", "examples", "tools", "tests")
        for path in (ROOT / folder).rglob("*.py")
        for page in re.findall(r"docs/[\w/-]+\.(?:md|json)", path.read_text(encoding="utf-8"))
    }
    assert named
    assert [where for where in sorted(named) if not (ROOT / where[0]).exists()] == []


def test_readme_shows_what_the_demo_prints() -> None:
    tool = ROOT / "tools" / "refresh_readme.py"
    done = subprocess.run([sys.executable, str(tool), "--check"], check=False, timeout=60)
    assert done.returncode == 0, "refresh it: python tools/refresh_readme.py"


def test_version_is_in_the_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## [Unreleased]" in changelog or f"## [{goodput.__version__}]" in changelog


def test_every_variable_of_the_environment_is_documented() -> None:
    read = {
        name
        for path in SOURCE.rglob("*.py")
        for name in re.findall(r"(?<!_)GOODPUT_[A-Z]+", path.read_text(encoding="utf-8"))
    }
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert {name for name in read if f"| `{name}` |" not in page} == set()
