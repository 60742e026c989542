"""Run a training script in this process as `python script.py` or `python -m module` would."""

from __future__ import annotations

import builtins
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import InspectLoader
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType, TracebackType

from align.errors import CaptureError
from align.sentences import say


class ProgramNotFound(CaptureError):
    """The module of `-m` turned out not to be there once its package had been imported."""


@dataclass(frozen=True, slots=True)
class Program:
    """What is run.

    A script is compiled beforehand (`code`). A module is only looked for when all else is ready: finding it runs
    its package's own code, which must see `sys.argv` and `sys.path` as under `python -m`.
    """

    name: str
    file: str
    folder: str
    code: CodeType | None = None


def find_script(path: str) -> Program:
    """Read and compile a script; raises CaptureError where it is missing, and the script's own SyntaxError."""
    file = Path(path)
    if not file.is_file():
        what = say("it is a folder") if file.is_dir() else say("it does not exist")
        raise CaptureError(say("Cannot run '{}': {}. Give the path of the training script, or -m MODULE.", path, what))
    try:
        source = file.read_bytes()
    except OSError as error:
        raise CaptureError(say("Cannot run '{}': {}. Check its permissions.", path, error.strerror)) from error
    absolute = os.path.abspath(path)  # noqa: PTH100  Python does not follow links here either
    return Program(path, absolute, str(file.resolve().parent), compile(source, absolute, "exec", dont_inherit=True))


def find_module(name: str) -> Program:
    """Check that the package of a module is there, without running anything of it; raises CaptureError if not."""
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        spec = importlib.util.find_spec(name.split(".", maxsplit=1)[0])
    except (ImportError, ValueError) as error:
        raise CaptureError(_no_module(name, str(error))) from error
    finally:
        sys.path.remove(folder)
    if spec is None:
        raise CaptureError(_no_module(name, f"No module named '{name.split('.', maxsplit=1)[0]}'"))
    return Program(name, spec.origin or name, folder)


def _no_module(name: str, why: str) -> str:
    return say("Cannot run -m {}: {}. Check the name and PYTHONPATH.", name, why)


def run_program(program: Program, arguments: Sequence[str]) -> None:
    """Execute the program as `__main__`, with its own `sys.argv` and `sys.path`; its exceptions come through."""
    sys.path[0] = program.folder
    if program.code is None:
        sys.argv = ["-m", *arguments]
        spec, code = _locate(program.name)
        _execute(code, spec.origin or program.name, spec, arguments)
    else:
        loader = SourceFileLoader("__main__", program.file)
        _execute(program.code, program.file, None, arguments, name=program.name, loader=loader)


def _locate(name: str) -> tuple[importlib.machinery.ModuleSpec, CodeType]:
    """The module that `python -m` would run and its code."""
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError as error:
        raise ProgramNotFound(_no_module(name, str(error))) from error
    loader = spec.loader if spec is not None else None
    code = loader.get_code(spec.name) if spec is not None and isinstance(loader, InspectLoader) else None
    if spec is None or code is None:
        raise ProgramNotFound(_no_module(name, "no module of that name can be run"))
    return spec, code


def _execute(
    code: CodeType,
    file: str,
    spec: importlib.machinery.ModuleSpec | None,
    arguments: Sequence[str],
    *,
    name: str | None = None,
    loader: SourceFileLoader | None = None,
) -> None:
    main = ModuleType("__main__")
    main.__file__ = file
    main.__builtins__ = builtins  # type: ignore[attr-defined]
    vars(main)["__cached__"] = spec.cached if spec is not None else None
    main.__spec__ = spec
    main.__loader__ = spec.loader if spec is not None else loader
    main.__package__ = spec.parent if spec is not None else None
    sys.modules["__main__"] = main
    sys.argv = [name or file, *arguments]
    exec(code, main.__dict__)  # noqa: S102  running the user's script is the purpose


def own_traceback(error: BaseException) -> TracebackType | None:
    """The traceback without the frames of align that stand above the script's first."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__") != "__main__":
        trace = trace.tb_next
    return trace


def exit_code_of(error: BaseException | None) -> int:
    """Report an exception as Python would at top level, and give the exit code that it means."""
    if error is None:
        return 0
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr)  # noqa: T201  as Python does
        return 1
    error.__traceback__ = own_traceback(error)
    sys.excepthook(type(error), error, error.__traceback__)
    return 130 if isinstance(error, KeyboardInterrupt) else 1
