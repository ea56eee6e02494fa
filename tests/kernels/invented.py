"""A third chip, made from the tables of a real one so that its code still runs on the emulator, and how to compile for
it. `compile_for` is for the worker."""

from __future__ import annotations

import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

from hkc import decisions, pipeline
from hkc.frontend.program import Checked
from hkc.handover import Binary, LdsBuffer
from hkc.targets.chip import FOLDER, load

NAME = "gfx942"
BANKS = 16
LDS = 32768


def invent(folder: Path) -> Path:
    """A chip with half the banks and half the LDS of the real one, without its 16x16x16 matrix instructions."""
    made = folder / NAME
    shutil.copytree(FOLDER / NAME, made)
    table = (made / "mfma.toml").read_text().splitlines(keepends=True)
    (made / "mfma.toml").write_text("".join(row for row in table if "16x16x16_" not in row))
    lds = tomllib.loads((made / "lds.toml").read_text())
    accesses = lds.pop("access")
    lines = [f"{key} = {value!r}" for key, value in {**lds, "bytes": LDS}.items()]
    for access in accesses:
        lanes = BANKS * 4 // max(4, access["bytes"])
        step = 1 << (lanes.bit_length() - 1)
        access |= {"banks": BANKS, "phases": [f"{i}-{i + step - 1}" for i in range(0, 64, step)]}
        lines += ["[[access]]", *(f"{key} = {value!r}" for key, value in access.items())]
    (made / "lds.toml").write_text("\n".join(lines).replace("'", '"'))
    return folder


def compile_for(checked: Checked, folder: Path) -> Binary:
    """The whole pipeline for the invented chip."""
    from hkc.passes.locate import quote
    from hkc.support.mlir import context, ir

    lds: tuple[LdsBuffer, ...] = ()
    with context(), ir.Location.unknown(), quote(checked.source):
        module = pipeline.emit(checked, load(NAME, folder))
        for stage, passes in pipeline.stages().items():
            module = pipeline.run(module, passes)
            if stage == "wave":
                lds = decisions.lds_buffers(module)
        assembly = pipeline.translate(module)
    return replace(pipeline.generate(assembly, pipeline.interface(module), text=True), lds=lds)
