"""The kernel descriptor: 64 bytes from which the hardware learns how to start a kernel's waves.

Bit layout for the GFX9 chips with a unified vector register file, from LLVM's AMDGPUUsage, "Kernel Descriptor" and
"compute_pgm_rsrc1/2/3"; the order of the initial SGPRs from "Initial Kernel Execution State" in the same document.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

SIZE = 64

_USER_SGPRS = (  # bit of kernel_code_properties, name, registers
    (0, "private_segment_buffer", 4),
    (1, "dispatch_ptr", 2),
    (2, "queue_ptr", 2),
    (3, "kernarg_segment_ptr", 2),
    (4, "dispatch_id", 2),
    (5, "flat_scratch_init", 2),
    (6, "private_segment_size", 1),
)
_SYSTEM_SGPRS = ((7, "workgroup_id_x"), (8, "workgroup_id_y"), (9, "workgroup_id_z"), (10, "workgroup_info"))


@dataclass(frozen=True)
class FloatMode:
    """The initial mode register. Rounding: 0 to nearest even, 1 up, 2 down, 3 to zero.

    Denormals: 0 flush inputs and results, 1 flush results, 2 flush inputs, 3 keep.
    """

    round_f32: int
    round_f16_f64: int
    denorm_f32: int
    denorm_f16_f64: int
    dx10_clamp: bool
    ieee: bool
    fp16_overflow: bool


@dataclass(frozen=True)
class Sgprs:
    """A run of SGPRs that is set when a wave starts: what it holds, its first register, how many."""

    name: str
    first: int
    count: int


@dataclass(frozen=True)
class Descriptor:
    """A decoded kernel descriptor. Sizes in bytes; `entry_offset` counts from the descriptor's own address.

    `vgprs` is the whole allocation of a lane in the unified file, `accum_offset` of them (the rest are AccVGPRs);
    counts are rounded up to the allocation granule (8 VGPRs, 16 SGPRs). `workitem_ids` is how many of x, y, z arrive
    in VGPRs, packed in v0 with 10 bits each. `preload` is the number of SGPRs filled with kernel arguments from dword
    `preload_offset` on; the entry for firmware that preloads lies 256 bytes after the entry point.
    """

    lds: int
    scratch: int
    kernarg_size: int
    entry_offset: int
    vgprs: int
    accum_offset: int
    sgprs: int
    float_mode: FloatMode
    uses_scratch: bool
    user_sgpr_count: int
    user_sgprs: tuple[Sgprs, ...]
    system_sgprs: tuple[Sgprs, ...]
    workitem_ids: int
    preload: int
    preload_offset: int
    wave32: bool
    dynamic_stack: bool
    workgroup_split: bool

    @property
    def agprs(self) -> int:
        """How many AccVGPRs a lane has."""
        return max(0, self.vgprs - self.accum_offset)


def decode(content: bytes) -> Descriptor:
    """The descriptor in these 64 bytes. Any bytes decode: whether they are a descriptor is not for them to say."""
    lds, scratch, kernarg_size, _, entry_offset = struct.unpack_from("<IIIIq", content)
    rsrc3, rsrc1, rsrc2, properties, preload = struct.unpack_from("<IIIHH", content, 44)
    user = _user_sgprs(properties, preload & 0x7F)
    user_count = _bits(rsrc2, 1, 5)
    return Descriptor(
        lds=lds,
        scratch=scratch,
        kernarg_size=kernarg_size,
        entry_offset=entry_offset,
        vgprs=(_bits(rsrc1, 0, 6) + 1) * 8,
        accum_offset=(_bits(rsrc3, 0, 6) + 1) * 4,
        sgprs=(_bits(rsrc1, 6, 4) // 2 + 1) * 16,
        float_mode=_float_mode(rsrc1),
        uses_scratch=bool(_bits(rsrc2, 0, 1)),
        user_sgpr_count=user_count,
        user_sgprs=user,
        system_sgprs=_system_sgprs(rsrc2, user_count),
        workitem_ids=min(3, _bits(rsrc2, 11, 2) + 1),
        preload=preload & 0x7F,
        preload_offset=preload >> 7,
        wave32=bool(_bits(properties, 10, 1)),
        dynamic_stack=bool(_bits(properties, 11, 1)),
        workgroup_split=bool(_bits(rsrc3, 16, 1)),
    )


def _float_mode(rsrc1: int) -> FloatMode:
    return FloatMode(
        round_f32=_bits(rsrc1, 12, 2),
        round_f16_f64=_bits(rsrc1, 14, 2),
        denorm_f32=_bits(rsrc1, 16, 2),
        denorm_f16_f64=_bits(rsrc1, 18, 2),
        dx10_clamp=bool(_bits(rsrc1, 21, 1)),
        ieee=bool(_bits(rsrc1, 23, 1)),
        fp16_overflow=bool(_bits(rsrc1, 26, 1)),
    )


def _user_sgprs(properties: int, preload: int) -> tuple[Sgprs, ...]:
    found, at = [], 0
    for bit, name, count in _USER_SGPRS:
        if properties >> bit & 1:
            found.append(Sgprs(name, at, count))
            at += count
    if preload:
        found.append(Sgprs("kernarg_preload", at, preload))
    return tuple(found)


def _system_sgprs(rsrc2: int, first: int) -> tuple[Sgprs, ...]:
    enabled = [name for bit, name in _SYSTEM_SGPRS if rsrc2 >> bit & 1]
    return tuple(Sgprs(name, first + i, 1) for i, name in enumerate(enabled))


def _bits(word: int, first: int, count: int) -> int:
    return word >> first & (1 << count) - 1
