"""The build hook: refuses to build a package that would lack `align.hooks` or `align.reports`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LINKS = ("hooks", "reports")


class LinkGuard(BuildHookInterface[Any]):
    """Checks that the links from `align` to the folders beside it arrived as links."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Stop the build where a link is not a folder."""
        for name in LINKS:
            link = Path(self.root, "align", name)
            if not link.is_dir():
                self.app.abort(
                    f"Cannot build align: '{link}' must be a link to the folder '{name}', but it is not a folder. "
                    "Git was set up without symbolic links here; run 'git config core.symlinks true' and "
                    f"'git checkout -- align/{name}'."
                )
