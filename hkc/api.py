"""The Python interface: `compile` a kernel, look at it, save it, call it with arrays.

Most imports are inside functions: the compiler's process is to start before this one loads NumPy and the front end.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from hkc.support import worker
from hkc.support.errors import Diagnostic, HkcUsageError, Source

if TYPE_CHECKING:
    from hkc.frontend.program import Checked
    from hkc.handover import Binary, LdsBuffer, Resources
    from hkc.machine.abi import KernelInfo
    from hkc.runtime.arguments import Arguments
    from hkc.runtime.device import Device, LaunchResult, Progress

DEVICES = ("hip", "emulator", "reference")
"""What can run a kernel: a GPU, the emulator, or the NumPy meanings of the tile operations."""

SUFFIXES = {
    "tile": "tile.mlir",
    "wave": "wave.mlir",
    "rocdl": "rocdl.mlir",
    "llvm": "ll",
    "asm": "s",
    "hsaco": "hsaco",
}
"""The stages that can be kept, in order, and how their files end."""


@dataclass(frozen=True)
class Argument:
    """One piece of the kernel-argument segment: its name (`A`, `A.extent.0`, `A.stride.1`), kind, offset and bytes.

    `kind` is "pointer", "extent" or "stride" (both i64) or the dtype of a number.
    """

    name: str
    kind: str
    offset: int
    bytes: int


@dataclass(frozen=True, eq=False, repr=False)
class CompiledKernel:
    """A kernel compiled for one chip. Calling it runs it.

    `texts` holds the intermediate stages that were asked for (`keep=`), by name. `checked` is the kernel's source; one
    that was compiled from the text of a module has none.
    """

    binary: Binary
    checked: Checked | None

    @property
    def arch(self) -> str:
        """The chip."""
        return self.binary.arch

    @property
    def hsaco(self) -> bytes:
        """The code object."""
        return self.binary.hsaco

    @property
    def info(self) -> KernelInfo:
        """Parameters, grid, entry points and the conditions that admit a launch to each."""
        return self.binary.info

    @property
    def texts(self) -> Mapping[str, str]:
        """The kept stages as text: `tile`, `wave`, `rocdl`, `llvm`, `asm`."""
        return self.binary.texts

    @property
    def symbol(self) -> str:
        """The entry point that is tried first; the numbers below are its own."""
        return self.info.entries[0].symbol

    @property
    def resources(self) -> Mapping[str, Resources]:
        """What each entry point takes, by symbol."""
        return self.binary.resources

    @property
    def spills(self) -> Mapping[str, str]:
        """How many registers each entry point spills that does, as a sentence, by symbol."""
        found = self.resources.items()
        return {symbol: f"`{symbol}` for {self.arch} spills {taken.spilled}" for symbol, taken in found if taken.spills}

    @property
    def vgpr(self) -> int:
        """Vector registers per lane, accumulation registers included."""
        return self.resources[self.symbol].vgpr

    @property
    def agpr(self) -> int:
        """Accumulation registers per lane."""
        return self.resources[self.symbol].agpr

    @property
    def sgpr(self) -> int:
        """Scalar registers per wave."""
        return self.resources[self.symbol].sgpr

    @property
    def lds_bytes(self) -> int:
        """Bytes of LDS per workgroup."""
        return self.resources[self.symbol].lds_bytes

    @property
    def lds(self) -> tuple[LdsBuffer, ...]:
        """The LDS buffers, each with its byte map and the proof of what its accesses cost."""
        return self.binary.lds

    @property
    def waves(self) -> int:
        """Waves per workgroup."""
        return self.info.waves

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The layout of the kernel-argument segment."""
        return tuple(_layout(self.info))

    def __call__(self, *args: Any, device: str | None = None, **named: Any) -> Any:
        """Run the kernel and return what it writes: one array, or a tuple of them in parameter order.

        Arguments go by position in parameter order, or by name. Arrays that the kernel only writes may be left out:
        they are allocated from the dims (which can be given by name, `N=100`, where no array has them). An array may
        have any strides. `device` is one of `DEVICES`, by default the GPU if there is one of this chip, else
        the emulator.

        Raises `HkcError` HK501 to HK512 for arguments that don't fit and launches that can't be.
        """
        arguments = self.bind(*args, **named)
        self.run(arguments, device)
        outputs = arguments.results(self.info)
        return outputs[0] if len(outputs) == 1 else outputs

    def bind(self, *args: Any, **named: Any) -> Arguments:
        """The arguments of a call, checked, with memory for the arrays that were left out."""
        from hkc.runtime.arguments import bind

        return bind(self.info, args, named)

    def launch(
        self, arguments: Arguments, device: str | Device | None = None, progress: Progress | None = None
    ) -> LaunchResult:
        """Run the kernel with arguments from `bind`, and say what happened. `progress` hears how far it is."""
        from hkc.emulate.faults import Fault

        try:
            return self._device(device).run(self.binary, arguments, progress)
        except Fault as failed:
            if self.checked:
                failed.quote(self.checked.source)
            raise

    def run(
        self, arguments: Arguments, device: str | Device | None = None, progress: Progress | None = None
    ) -> LaunchResult:
        """Like `launch`, and what the kernel prints goes to standard error, also where an assertion stops it."""
        from hkc.emulate.faults import Fault

        try:
            result = self.launch(arguments, device, progress)
        except Fault as failed:
            print(failed.printed, end="", file=sys.stderr)
            raise
        print(result.printed, end="", file=sys.stderr)
        return result

    def files(self, folder: str | Path, stem: str, stages: Sequence[str] = ("hsaco",)) -> dict[Path, bytes]:
        """The content of `STEM.ARCH.SUFFIX` in `folder` for each of these stages, which were kept.

        With the code object comes `STEM.ARCH.lines.json`: from which line and column of the source each address is.
        """
        contents = {stage: text.encode() for stage, text in self.texts.items()} | {"hsaco": self.hsaco}
        files = {suffix: contents[stage] for stage, suffix in SUFFIXES.items() if stage in stages}
        if "hsaco" in stages:
            files["lines.json"] = self._lines().encode()
        return {Path(folder, f"{stem}.{self.arch}.{suffix}"): content for suffix, content in files.items()}

    def save(self, folder: str | Path = ".", stem: str | None = None) -> list[Path]:
        """Write `STEM.ARCH.hsaco`, its line table and the kept stages into `folder`; returns the paths.

        `stem` is the kernel's name unless given. Every file appears complete or not at all.
        """
        from hkc.support.files import write_all

        return write_all(self.files(folder, stem or self.info.name, (*self.texts, "hsaco")))

    def _lines(self) -> str:
        from hkc.machine.lines import written

        name = self.checked.source.name if self.checked else next((line.file for line in self.binary.lines), "")
        return written(self.binary.lines, name, self.hsaco)

    def _device(self, device: str | Device | None) -> Device:
        """The device that is meant; by default a GPU of the chip, else the emulator."""
        from hkc.runtime import hip

        if device is None:
            device = "hip" if hip.available()[0] and hip.arch() == self.arch else "emulator"
        match device:
            case "hip":
                return hip.Hip()
            case "emulator":
                from hkc.runtime.emulator import Emulator

                return Emulator()
            case "reference":
                from hkc.runtime.interpreter import Reference

                if self.checked is None:
                    raise HkcUsageError(Diagnostic("HK516", "the reference needs the kernel's source, not a module"))
                return Reference(self.checked)
            case str():
                raise HkcUsageError(Diagnostic("HK516", f"there is no device `{device}`", hint=", ".join(DEVICES)))
        return device

    def __repr__(self) -> str:
        r = self.resources[self.symbol]
        spills = f", {r.vgpr_spills} VGPR spills" if r.vgpr_spills else ""
        constants = "".join(f" {name}={value}" for name, value in self.info.constants)
        lines = [
            f"<kernel {self.symbol} for {self.arch}:{constants}",
            f"  {r.vgpr} VGPR (of them {r.agpr} AGPR), {r.sgpr} SGPR{spills}",
            f"  {r.scratch} B scratch, {r.lds_bytes} B LDS",
            f"  {self.waves} waves per workgroup, grid {' x '.join(self.info.grid)}, {len(self.hsaco)} B code object",
            *(f"  {a.offset:4} {a.name}: {a.kind}" for a in self.arguments),
        ]
        return "\n".join(lines) + ">"


class PythonKernel:
    """A Python function that is a kernel, as `@hkc.kernel` makes it. Calling it compiles it and runs it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self._compiled: dict[str, CompiledKernel] = {}

    def compile(self, arch: str | None = None, *, keep: Sequence[str] = (), **constants: Any) -> CompiledKernel:
        """Like `hkc.compile`, of this function."""
        return compile(self, arch, keep=keep, **constants)

    def __call__(self, *args: Any, arch: str | None = None, device: str | None = None, **named: Any) -> Any:
        """Compile for `arch` (by default the GPU here) with the constants of its module, once, and run."""
        chip = chip_name(arch)
        if chip not in self._compiled:
            self._compiled[chip] = self.compile(chip)
        return self._compiled[chip](*args, device=device, **named)


def kernel(function: Callable[..., Any] | None = None, /, **hints: Any) -> Any:
    """Decorator: this function is a kernel, `@hkc.kernel` or `@hkc.kernel(waves=4)`.

    The function is read, not executed; the names that it may use are those of `hkc.language`.
    """
    return PythonKernel(function) if function is not None else PythonKernel


def compile(  # noqa: A001 (it is spelled hkc.compile)
    source: str | Path | PythonKernel | Callable[..., Any],
    arch: str | None = None,
    *,
    keep: Sequence[str] = (),
    debug: bool = False,
    kernel: str | None = None,
    **constants: Any,
) -> CompiledKernel:
    """Compile the kernel of a `.hk` file, of a text (a `str` with a line break in it), or a Python function; or go on
    with a module at any stage before LLVM IR (an `.mlir` file), which names its chip.

    `arch` is a chip, by default that of the GPU here. `constants` replace `const` and `tune` values of the file.
    `keep` names intermediate stages (`tile`, `wave`, `rocdl`, `llvm`, `asm`) to be found in `.texts`; with `debug`
    the code object holds its line table. `kernel` names the one that is meant where a file has several. Kernels of a
    Python file (`.py`), marked by `@hkc.kernel`, are read without running it.

    Raises `HkcError` for mistakes in the kernel, `HkcUsageError` for an unknown chip, stage or constant. Warns
    (`RuntimeWarning`) of registers that are spilled to memory.
    """
    warm_up()
    from hkc import pipeline

    check_stages(keep)
    if _is_module(source):
        made = build_module(_source(source), None if arch is None else chip_name(arch), keep, debug)
    else:
        chip = chip_name(arch)
        values = {name: str(value) for name, value in constants.items()}
        if isinstance(source, (str, Path)):
            checked = pipeline.check(_source(source), values, kernel)
        else:
            checked = pipeline.check_function(getattr(source, "function", source), values)
        made = build(checked, chip, keep, debug)
    for spilled in made.spills.values():
        warnings.warn(spilled, RuntimeWarning, stacklevel=2)
    return made


def warm_up() -> None:
    """Begin to start the compiler's process, so that it gets ready while this one reads the source."""
    worker.start("hkc.passes.lower_wave_to_rocdl")


def check_stages(names: Sequence[str]) -> None:
    """Raise `HkcUsageError` HK516 for a name that is no stage."""
    if unknown := [name for name in names if name not in SUFFIXES]:
        raise HkcUsageError(Diagnostic("HK516", f"there is no stage `{unknown[0]}`", hint=", ".join(SUFFIXES)))


def build(checked: Checked, arch: str, keep: Sequence[str] = (), debug: bool = False) -> CompiledKernel:
    """Compile a checked file for one chip. Options as in `compile`."""
    files = {"kernel.hk": checked.source.text}
    binary: Binary = worker.call("hkc.pipeline:compile_kernel", checked, arch, tuple(keep), debug, replay=files)
    return CompiledKernel(binary, checked)


def build_module(
    source: Source, arch: str | None = None, keep: Sequence[str] = (), debug: bool = False
) -> CompiledKernel:
    """Compile the text of a module from the stage that it is at. `arch` is by default the chip that it names."""
    files = {"module.mlir": source.text}
    binary: Binary = worker.call("hkc.pipeline:compile_module", source, arch, tuple(keep), debug, replay=files)
    return CompiledKernel(binary, None)


def chip_name(arch: str | None) -> str:
    """The chip that a call names, by default the GPU's. Raises `HkcUsageError` HK422 for an unknown one, HK514 where
    none is named and there is no GPU, and for what is no name."""
    from hkc.targets.chip import load

    if arch is None:
        return gpu_arch()
    if not isinstance(arch, str):
        raise HkcUsageError(Diagnostic("HK514", f"a kernel is compiled for one chip, named by a text, not {arch!r}"))
    return load(arch).name


def gpu_arch() -> str:
    """The chip of the GPU here. Raises `HkcUsageError` HK514, naming the chips, where there is none."""
    from hkc.runtime import hip
    from hkc.targets.chip import load, names

    usable, reason = hip.available()
    if not usable:
        known = ", ".join(names())
        raise HkcUsageError(Diagnostic("HK514", f"no chip is named, and {reason}", hint=f"name one of {known}"))
    return load(hip.arch()).name


def _is_module(source: object) -> TypeGuard[str | Path]:
    return isinstance(source, (str, Path)) and "\n" not in str(source) and str(source).endswith(".mlir")


def _source(source: str | Path) -> Source:
    from hkc.frontend.parse import read

    if isinstance(source, str) and not source.strip():
        raise HkcUsageError(
            Diagnostic("HK122", "an empty text holds no kernel", hint="pass a path, or a kernel's text")
        )
    if isinstance(source, str) and "\n" in source:
        return Source("<string>", source)
    return read(source)


def _layout(info: KernelInfo) -> list[Argument]:
    """As `hkc.machine.abi.pack` lays them out."""
    from hkc.machine.abi import GlobalParam
    from hkc.support.dtypes import dtype

    found: list[Argument] = []
    offset = 0
    for p in info.params:
        if isinstance(p, GlobalParam):
            pieces = [(p.name, "pointer", 8)]
            pieces += [(f"{p.name}.{kind}.{d}", kind, 8) for kind in ("extent", "stride") for d in range(len(p.dims))]
        else:
            pieces = [(p.name, p.dtype, dtype(p.dtype).bytes)]
        for name, kind, size in pieces:
            offset += -offset % size
            found.append(Argument(name, kind, offset, size))
            offset += size
    if info.prints:
        found.append(Argument("what is printed", "pointer", offset + -offset % 8, 8))
    return found
