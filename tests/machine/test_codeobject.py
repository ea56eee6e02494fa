"""Code objects: everything that the compiler wrote is read back, and no damage to a file ends in a traceback."""

import random
import re
import struct
from pathlib import Path

import pytest

from hkc.machine.codeobject import Argument, CodeObject
from hkc.machine.elf import Elf
from hkc.support.errors import HkcError


def code_of(data: bytes) -> str:
    with pytest.raises(HkcError) as caught:
        CodeObject.parse(data)
    return caught.value.diagnostics[0].code


def directives(assembly: str, kernel: str) -> dict[str, int]:
    """The `.amdhsa_…` directives that the assembler printed for a kernel."""
    block = assembly.split(f".amdhsa_kernel {kernel}\n")[1].split(".end_amdhsa_kernel")[0]
    return {k: int(v) for k, v in re.findall(r"\.amdhsa_(\w+) (\d+)\s", block)}


def test_identity(compiled):
    code = CodeObject.parse(compiled.hsaco)
    assert (code.arch, code.version) == (compiled.arch, 5)
    assert code.target == f"amdgcn-amd-amdhsa--{compiled.arch}"
    assert [k.name for k in code.kernels] == ["copy", "sum"]
    assert code.symbols["table"].size == 16


def test_arguments_and_resources(compiled):
    code = CodeObject.parse(compiled.hsaco)
    copy, total = code.kernels
    assert copy.metadata.args[:3] == (
        Argument("p", 0, 8, "global_buffer"),
        Argument("n", 8, 4, "by_value"),
        Argument("x", 16, 8, "by_value"),
    )
    assert (copy.metadata.lds, copy.metadata.scratch, copy.metadata.max_threads) == (4096, 0, 256)
    assert copy.metadata.wave_size == 64
    assert (copy.metadata.vgpr_spills, copy.metadata.sgpr_spills) == (0, 0)
    assert total.metadata.scratch >= 256 and total.metadata.lds == 0


@pytest.mark.parametrize("name", ["copy", "sum"])
def test_descriptors_agree_with_the_assembler(compiled, name):
    kernel = CodeObject.parse(compiled.hsaco).kernel(name)
    found, said = kernel.descriptor, directives(compiled.assembly, name)
    assert found.lds == said["group_segment_fixed_size"] == kernel.metadata.lds
    assert found.scratch == said["private_segment_fixed_size"]
    assert found.kernarg_size == said["kernarg_size"] == kernel.metadata.kernarg_size
    assert found.user_sgpr_count == said["user_sgpr_count"]
    users = {s.name for s in found.user_sgprs}
    for user in ("dispatch_ptr", "queue_ptr", "kernarg_segment_ptr", "dispatch_id", "private_segment_size"):
        assert (user in users) == bool(said[f"user_sgpr_{user}"])
    systems = {s.name for s in found.system_sgprs}
    for axis in "xyz":
        assert (f"workgroup_id_{axis}" in systems) == bool(said[f"system_sgpr_workgroup_id_{axis}"])
    assert found.workitem_ids == said["system_vgpr_workitem_id"] + 1
    mode = found.float_mode
    assert mode.round_f32 == said["float_round_mode_32"]
    assert mode.denorm_f32 == said["float_denorm_mode_32"]
    assert mode.denorm_f16_f64 == said["float_denorm_mode_16_64"]
    assert (mode.dx10_clamp, mode.ieee) == (said["dx10_clamp"], said["ieee_mode"])
    assert (found.preload, found.preload_offset) == (
        said["user_sgpr_kernarg_preload_length"],
        said["user_sgpr_kernarg_preload_offset"],
    )
    assert found.uses_scratch == bool(said["enable_private_segment"])
    assert not found.wave32 and not found.workgroup_split


def test_registers_of_the_descriptor_cover_those_of_the_metadata(compiled):
    for kernel in CodeObject.parse(compiled.hsaco).kernels:
        granules = -(-kernel.metadata.vgprs // 8)
        assert kernel.descriptor.vgprs == max(1, granules) * 8
        assert kernel.descriptor.sgprs == -(-kernel.metadata.sgprs // 16) * 16
        assert kernel.descriptor.accum_offset % 4 == 0
        assert kernel.descriptor.agprs >= kernel.metadata.agprs


def test_modes_differ_where_the_source_says_so(compiled):
    copy, total = CodeObject.parse(compiled.hsaco).kernels
    assert (copy.descriptor.float_mode.denorm_f32, total.descriptor.float_mode.denorm_f32) == (3, 0)
    assert (copy.descriptor.workitem_ids, total.descriptor.workitem_ids) == (1, 3)


def test_initial_sgprs_follow_each_other(compiled):
    for kernel in CodeObject.parse(compiled.hsaco).kernels:
        at = 0
        for run in (*kernel.descriptor.user_sgprs, *kernel.descriptor.system_sgprs):
            assert run.first == at
            at += run.count


def test_code_and_segments(compiled):
    code = CodeObject.parse(compiled.hsaco)
    for kernel in code.kernels:
        content = code.code(kernel)
        assert len(content) == kernel.size > 0
        assert content[-4:] == bytes.fromhex("000081bf")  # s_endpgm
        assert any(s.executable and s.address <= kernel.entry < s.address + s.size for s in code.segments)
    elf = Elf(compiled.hsaco)
    assert struct.unpack("<4I", elf.read(code.symbols["table"].address, 16, "the table")) == (1, 2, 3, 4)


def test_a_wrong_kernel_name_lists_the_right_ones(compiled):
    code = CodeObject.parse(compiled.hsaco)
    with pytest.raises(HkcError, match=r"(?s)no kernel `coopy`; the code object holds copy, sum.*did you mean `copy`"):
        code.kernel("coopy")
    with pytest.raises(HkcError, match="no kernel was named"):
        code.kernel()


def test_foreign_files(compiled):
    assert code_of(b"") == "HK601"
    assert code_of(b"#!/bin/sh\n") == "HK601"
    assert code_of(b"\x7fELF") == "HK603"
    assert code_of(Path("/proc/self/exe").read_bytes()) == "HK602"
    assert code_of(patched(compiled.hsaco, 4, b"\x01")) == "HK602"  # 32 bit
    assert code_of(patched(compiled.hsaco, 8, b"\x01")) == "HK602"  # code object version 3
    assert code_of(patched(compiled.hsaco, 16, b"\x01")) == "HK602"  # not linked


def test_damaged_metadata(compiled):
    for old, new in ((b"amdhsa.target", b"amdhsa.tarnot"), (b".symbol", b".symbox"), (b".vgpr_count", b".vgpr_cOunt")):
        assert code_of(compiled.hsaco.replace(old, new)) == "HK604"
    assert code_of(compiled.hsaco.replace(b"AMDGPU\0", b"AMDGPX\0")) == "HK604"
    with pytest.raises(HkcError, match=r"`amdhsa.target` is missing\nhint: .* add `amdhsa.target: amdgcn-amd-amdhsa--"):
        CodeObject.parse(compiled.hsaco.replace(b"amdhsa.target", b"amdhsa.tarpit"))
    assert code_of(compiled.hsaco.replace(b"\xa7copy.kd", b"\xa7cOpy.kd")) == "HK605"


def test_targets_of_newer_compilers_are_understood(compiled):
    """LLVM 24 names a subarchitecture and an environment: `amdgpu9.42-amd-amdhsa-unknown-…`."""
    old = f"amdgcn-amd-amdhsa--{compiled.arch}".encode()
    newer = compiled.hsaco.replace(old, f"amdgpu9.42-amd-a-u-{compiled.arch}".encode())
    assert CodeObject.parse(newer).arch == compiled.arch
    assert code_of(compiled.hsaco.replace(old, b"amdgcn-amd-amdhsa".ljust(len(old)))) == "HK604"


FLAGS = 48  # where they are in the ELF header


def flagged(data: bytes, clear: int, put: int) -> bytes:
    (flags,) = struct.unpack_from("<I", data, FLAGS)
    return patched(data, FLAGS, struct.pack("<I", flags & ~clear | put))


@pytest.mark.parametrize(("feature", "bit"), [("xnack", 8), ("sramecc", 10)])
def test_features_of_the_header_are_those_of_the_metadata(compiled, feature, bit):
    for setting, word in ((0, ""), (1, ""), (2, "-"), (3, "+")):
        header = flagged(compiled.hsaco, 3 << bit, setting << bit)
        for said in ("", "-", "+"):
            name = f"amdgcn-amd-amdhsa--{compiled.arch}".encode()
            target = name.replace(b"amdgcn-amd-amdhsa--", b"a-a-a--") + (f":{feature}{said}".encode() if said else b"")
            if said:  # a target as long as the one in the file: what comes before the processor isn't looked at
                data = header.replace(name, target.replace(b"a-a-a", b"a-a-" + b"a" * (1 + len(name) - len(target))))
            else:
                data = header
            if said == word:
                assert CodeObject.parse(data).target.endswith(f":{feature}{said}" if said else compiled.arch)
            else:
                assert code_of(data) == "HK607"
    with pytest.raises(HkcError, match=f"header says {feature} on, but the metadata's target is `amdgcn-amd-amdhsa--"):
        CodeObject.parse(flagged(compiled.hsaco, 3 << bit, 3 << bit))


def test_every_cut_is_noticed(compiled):
    for size in (*range(0, len(compiled.hsaco), 41), *range(len(compiled.hsaco) - 64, len(compiled.hsaco))):
        assert code_of(compiled.hsaco[:size]) in ("HK601", "HK603")


def patched(data: bytes, offset: int, content: bytes) -> bytes:
    return data[:offset] + content + data[offset + len(content) :]


def mutate(data: bytes, seed: int) -> bytes:
    """A damaged copy: bytes flipped (mostly in the headers), a stretch removed, or a stretch overwritten."""
    source = random.Random(seed)
    content = bytearray(data)
    for _ in range(source.choice((1, 2, 8, 32))):
        end = source.choice((64, 512, 2048, len(content)))
        at = source.randrange(min(end, len(content)))
        content[at] = source.choice((0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)))
    if source.random() < 0.2:
        at = source.randrange(len(content))
        del content[at : at + source.randrange(64)]
    if source.random() < 0.1:
        at = source.randrange(len(content))
        content[at : at + 16] = source.randbytes(16)
    return bytes(content)


def survive(data: bytes, seeds: range) -> None:
    """Each damaged copy either parses, and then can be used, or is refused by an error that can be shown."""
    refused = 0
    for seed in seeds:
        try:
            code = CodeObject.parse(mutate(data, seed))
            for kernel in code.kernels:
                code.code(kernel)
        except HkcError as failure:
            refused += 1
            assert re.match(r"HK60\d$", failure.diagnostics[0].code), seed
            assert len(str(failure)) < 2000, seed
    assert refused > len(seeds) // 10


def test_damage_never_ends_in_a_traceback(compiled):
    survive(compiled.hsaco, range(500))


@pytest.mark.long
def test_much_damage_never_ends_in_a_traceback(compiled):
    survive(compiled.hsaco, range(500, 10_500))
