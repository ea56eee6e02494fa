"""The Python interface: `compile` a kernel, look at it, save it, call it with arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hkc import pipeline
from hkc.frontend.parse import read
from hkc.frontend.program import Checked
from hkc.handover import STAGES, Binary, Resources
from hkc.machine.abi import GlobalParam, KernelInfo
from hkc.runtime import hip
from hkc.runtime.device import Device, LaunchResult, Progress
from hkc.support import worker
from hkc.support.dtypes import dtype
from hkc.support.errors import Diagnostic, HkcUsageError, Source, error
from hkc.targets.chip import load

DEVICES = ("hip", "emulator")
"""What can run a kernel, in the order of preference."""

_SUFFIXES = dict(zip(STAGES, ("tile.mlir", "wave.mlir", "rocdl.mlir", "ll", "s", "hsaco"), strict=True))


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

    `texts` holds the intermediate stages that were asked for (`keep=`), by name.
    """

    binary: Binary
    checked: Checked

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
        return self.binary.plan.launches[0]

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
    def lds(self) -> int:
        """Bytes of LDS per workgroup."""
        return self.resources[self.symbol].lds

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
        have any strides. `device` is "hip" or "emulator", by default the GPU if there is one of this chip.

        Raises `HkcError` HK501 to HK512 for arguments that don't fit and launches that can't be.
        """
        outputs, _ = self.launch(*args, device=device, **named)
        return outputs[0] if len(outputs) == 1 else outputs

    def launch(
        self, *args: Any, device: str | Device | None = None, progress: Progress | None = None, **named: Any
    ) -> tuple[tuple[Any, ...], LaunchResult]:
        """As a call, but returns all outputs as a tuple, and what the launch did. `progress` hears how far it is."""
        from hkc.runtime.arguments import bind

        arguments = bind(self.info, args, named)
        result = _device(device, self.arch).run(self.binary, arguments, progress)
        return arguments.results(self.info), result

    def save(self, folder: str | Path = ".", stem: str | None = None) -> list[Path]:
        """Write `STEM.ARCH.hsaco`, and the kept stages beside it, into `folder`; returns the paths.

        `stem` is the kernel's name unless given. Every file appears complete or not at all.
        """
        from hkc.support.files import write_all

        contents = {_SUFFIXES[stage]: text.encode() for stage, text in self.texts.items()}
        contents[_SUFFIXES["hsaco"]] = self.hsaco
        name = f"{stem or self.info.name}.{self.arch}"
        return write_all({Path(folder, f"{name}.{suffix}"): content for suffix, content in contents.items()})

    def __repr__(self) -> str:
        r = self.resources[self.symbol]
        spills = f", {r.vgpr_spills} VGPR spills" if r.vgpr_spills else ""
        constants = "".join(f" {name}={value}" for name, value in self.info.constants)
        lines = [
            f"<kernel {self.symbol} for {self.arch}:{constants}",
            f"  {r.vgpr} VGPR (of them {r.agpr} AGPR), {r.sgpr} SGPR{spills}, {r.scratch} B scratch, {r.lds} B LDS",
            f"  {self.waves} waves per workgroup, grid {' x '.join(self.info.grid)}, {len(self.hsaco)} B code object",
            *(f"  {a.offset:4} {a.name}: {a.kind}" for a in self.arguments),
        ]
        return "\n".join(lines) + ">"


def compile(  # noqa: A001 (it is spelled hkc.compile)
    source: str | Path, arch: str | None = None, *, keep: Sequence[str] = (), **constants: Any
) -> CompiledKernel:
    """Compile the kernel of a `.hk` file, or of a text (a `str` with a line break in it).

    `arch` is a chip, by default that of the GPU here. `constants` replace `const` and `tune` values of the file.
    `keep` names intermediate stages (`tile`, `wave`, `rocdl`, `llvm`, `asm`) to be found in `.texts`.

    Raises `HkcError` for mistakes in the kernel, `HkcUsageError` for an unknown chip, stage or constant.
    """
    warm_up()
    chip = load(arch).name if arch is not None else _gpu_arch()
    checked = pipeline.check(_source(source), {name: _text(value) for name, value in constants.items()})
    return build(checked, chip, keep)


def warm_up() -> None:
    """Begin to start the compiler's process, so that it gets ready while this one reads the source."""
    worker.start("hkc.passes.lower_wave_to_rocdl")


def build(checked: Checked, arch: str, keep: Sequence[str] = ()) -> CompiledKernel:
    """Compile a checked file for one chip."""
    if unknown := sorted(set(keep) - set(STAGES)):
        raise HkcUsageError(Diagnostic("HK516", f"there is no stage `{unknown[0]}`", hint=f"{', '.join(STAGES)}"))
    if len(checked.kernels) != 1:
        names = ", ".join(k.name for k in checked.kernels)
        raise error("HK515", f"the file has {len(checked.kernels)} kernels ({names})", checked.kernels[1].span)
    files = {"kernel.hk": checked.source.text}
    binary: Binary = worker.call("hkc.pipeline:compile_kernel", checked, arch, tuple(keep), replay=files)
    return CompiledKernel(binary, checked)


def devices() -> dict[str, str]:
    """What can run kernels here, by name, with the reason for what can't ("" for what can)."""
    return {"hip": hip.available()[1], "emulator": ""}


def _device(device: str | Device | None, arch: str) -> Device:
    """The device that is meant; by default a GPU of the chip, else the emulator."""
    from hkc.runtime.emulator import Emulator

    if device is None:
        device = "hip" if hip.available()[0] and hip.arch() == arch else "emulator"
    if not isinstance(device, str):
        return device
    if device not in DEVICES:
        raise HkcUsageError(Diagnostic("HK516", f"there is no device `{device}`", hint=" or ".join(DEVICES)))
    return hip.Hip() if device == "hip" else Emulator()


def _gpu_arch() -> str:
    usable, reason = hip.available()
    if not usable:
        from hkc.targets.chip import names

        raise HkcUsageError(
            Diagnostic("HK514", f"no chip is named, and {reason}", hint=f"arch= one of {', '.join(names())}")
        )
    return load(hip.arch()).name


def _source(source: str | Path) -> Source:
    if isinstance(source, str) and "\n" in source:
        return Source("<string>", source)
    return read(source)


def _text(value: Any) -> str:
    """A constant as it is written in a file: `True` is true, a NumPy dtype bf16."""
    return str(value)


def _layout(info: KernelInfo) -> list[Argument]:
    """As `hkc.machine.abi.pack` lays them out."""
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
    return found
