"""Each guide works when it is followed from top to bottom, and prints what it says it prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.guides.guide import GUIDES, blocks_of, follow, write_files

pytestmark = pytest.mark.promise("words.5")

PAGES = sorted(GUIDES.glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_guide_does_what_it_says(page: Path, tmp_path: Path) -> None:
    follow(page, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_guide_has_code_and_shows_that_it_works(page: Path) -> None:
    languages = {block.language for block in blocks_of(page)}
    assert {"python", "console"} <= languages


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_guide_adds_to_the_repository_is_as_lint_wants_it(
    page: Path, tmp_path: Path
) -> None:
    files = write_files(page, tmp_path)
    for words in (["check"], ["format", "--diff"]):
        command = [sys.executable, "-m", "ruff", *words, "--no-cache", *map(str, files)]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert not files or ended.returncode == 0, ended.stdout + ended.stderr


def test_there_is_a_guide_for_each_seam_that_people_extend() -> None:
    names = {page.stem for page in PAGES}
    assert names >= {"add-a-command", "add-a-front-end", "add-a-model", "add-a-store", "add-a-tool"}
