"""Reports are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from align.errors import UsageError
from align.reports.writing import check_writable, write_text


def test_write_replaces_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")

    write_text(str(path), "new \u2713\n")

    assert path.read_bytes() == b"new \xe2\x9c\x93\n"
    assert os.listdir(tmp_path) == ["report.html"]  # noqa: PTH208


def test_write_keeps_a_link(tmp_path: Path) -> None:
    (tmp_path / "latest.json").symlink_to("first.json")

    write_text(str(tmp_path / "latest.json"), "{}\n")

    assert (tmp_path / "latest.json").is_symlink()
    assert (tmp_path / "first.json").read_text() == "{}\n"


def test_write_gives_the_rights_that_any_new_file_has(tmp_path: Path) -> None:
    (tmp_path / "other").touch()

    write_text(str(tmp_path / "report"), "text")

    assert (tmp_path / "report").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_write_to_a_device_leaves_it_a_device() -> None:
    write_text(os.devnull, "text")

    assert not Path(os.devnull).is_file()


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        check_writable(str(tmp_path))

    assert str(caught.value) == f"Cannot write '{tmp_path}': it is a folder. Name a file in it."


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "report.html"

    with pytest.raises(UsageError) as caught:
        write_text(str(path), "text")

    reason = f"the folder '{path.parent}' does not exist"
    assert str(caught.value) == f"Cannot write '{path}': {reason}. Make it first, or name another file."


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        check_writable("")

    assert str(caught.value) == "Cannot write a report: the name of the file is empty. Name a file."


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_rights_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)

    with pytest.raises(UsageError) as caught:
        check_writable(str(tmp_path / "report"))

    reason = f"the folder '{tmp_path}' is not writable"
    assert str(caught.value) == f"Cannot write '{tmp_path / 'report'}': {reason}. Name a file elsewhere."


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
def test_a_full_disk_is_a_sentence() -> None:
    with pytest.raises(UsageError) as caught:
        write_text("/dev/full", "text")

    reason = "No space left on device"
    assert str(caught.value) == f"Cannot write '/dev/full': {reason}. Name a file elsewhere, or free the space."
