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
from pathlib import Path
from types import CodeType, ModuleType, TracebackType

from align.errors import CaptureError


@dataclass(frozen=True, slots=True)
class Program:
    """What is run: its code, and what Python would call it (`__file__`, `sys.argv[0]`, `sys.path[0]`)."""

    code: CodeType
    file: str
    name: str
    folder: str
    spec: importlib.machinery.ModuleSpec | None = None


def find_script(path: str) -> Program:
    """Read and compile a script; raises CaptureError where it is missing, and the script's own SyntaxError."""
    file = Path(path)
    if not file.is_file():
        what = "is a folder" if file.is_dir() else "does not exist"
        raise CaptureError(f"Cannot run '{path}': it {what}. Give the path of the training script, or -m MODULE.")
    try:
        source = file.read_bytes()
    except OSError as error:
        raise CaptureError(f"Cannot run '{path}': {error.strerror}. Check its permissions.") from error
    absolute = os.path.abspath(path)  # noqa: PTH100  Python does not follow links here either
    code = compile(source, absolute, "exec", dont_inherit=True)
    return Program(code, absolute, path, str(file.resolve().parent))


def find_module(name: str) -> Program:
    """Find a module as `python -m` does; raises CaptureError where there is none."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ImportError as error:
        raise CaptureError(f"Cannot run -m {name}: {error}. Check the name and PYTHONPATH.") from error
    finally:
        sys.path.pop(0)
    loader = spec.loader if spec is not None else None
    code = loader.get_code(spec.name) if spec is not None and isinstance(loader, InspectLoader) else None
    if spec is None or code is None:
        raise CaptureError(f"Cannot run -m {name}: no module of that name can be run. Check the name and PYTHONPATH.")
    file = spec.origin or name
    return Program(code, file, file, str(Path.cwd()), spec)


def run_program(program: Program, arguments: Sequence[str]) -> None:
    """Execute the program as `__main__`, with its own `sys.argv` and `sys.path`; its exceptions come through."""
    main = ModuleType("__main__")
    main.__file__ = program.file
    main.__builtins__ = builtins  # type: ignore[attr-defined]
    main.__spec__ = program.spec
    main.__package__ = program.spec.parent if program.spec is not None else None
    sys.modules["__main__"] = main
    sys.argv = [program.name, *arguments]
    sys.path[0] = program.folder
    exec(program.code, main.__dict__)  # noqa: S102  running the user's script is the purpose


def own_traceback(error: BaseException) -> TracebackType | None:
    """The traceback without the frames of align that stand above the script's first."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__") != "__main__":
        trace = trace.tb_next
    return trace or error.__traceback__


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
