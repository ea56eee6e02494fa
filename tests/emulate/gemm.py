"""A staged matrix product in LLVM IR: C = A · Bᵀ, bf16 in, f32 out, through LDS and 32x32 matrix instructions."""

from __future__ import annotations

TILE_K = 32


def gemm(arch: str, n: int, k: int, side: int = 2) -> str:
    """C is n columns wide; A and B have rows of k. 2x2 waves, each with side x side fragments of 32x32."""
    depth = 16 if arch == "gfx950" else 8
    tile = 64 * side
    lines: list[str] = []
    emit = lines.append
    emit(f"@lds = internal addrspace(3) global [{2 * tile * TILE_K} x i16] poison, align 16")
    emit("define amdgpu_kernel void @gemm(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c)"
         ' "amdgpu-flat-work-group-size"="256,256" "amdgpu-waves-per-eu"="1,2" {')  # fmt: skip
    emit("entry:")
    emit(" %t = call i32 @llvm.amdgcn.workitem.id.x()\n %gx = call i32 @llvm.amdgcn.workgroup.id.x()")
    emit(" %gy = call i32 @llvm.amdgcn.workgroup.id.y()\n %lane = and i32 %t, 63\n %wave = lshr i32 %t, 6")
    emit(" %wm = and i32 %wave, 1\n %wn = lshr i32 %wave, 1\n %l31 = and i32 %lane, 31\n %half = lshr i32 %lane, 5")
    emit(f" %m0 = mul i32 %gx, {tile}\n %n0 = mul i32 %gy, {tile}\n %tr = lshr i32 %t, 2\n %tk = and i32 %t, 3")
    emit(" %tk8 = shl i32 %tk, 3\n br label %loop\nloop:")
    emit(" %k = phi i32 [ 0, %entry ], [ %k2, %loop ]")
    for i in range(side * side):
        emit(f" %acc{i} = phi <16 x float> [ zeroinitializer, %entry ], [ %d{i}_{TILE_K // depth - 1}, %loop ]")
    _fetch(lines, k, side, tile)
    emit(" call void @bar()")
    for name in "ab":
        for r in range(side):
            emit(f" store <8 x i16> %v{name}{r}, ptr addrspace(3) %q{name}{r}, align 16")
    emit(" call void @bar()")
    for step in range(TILE_K // depth):
        _fragments(lines, step, depth, side, tile)
        for i in range(side * side):
            old = f"%acc{i}" if step == 0 else f"%d{i}_{step - 1}"
            emit(f" %d{i}_{step} = call <16 x float> {_mfma(arch)[0]} %fa{i // side}_{step},"
                 f" {_mfma(arch)[1]} %fb{i % side}_{step}, <16 x float> {old}, i32 0, i32 0, i32 0)")  # fmt: skip
    emit(f" %k2 = add i32 %k, {TILE_K}\n %go = icmp slt i32 %k2, {k}\n br i1 %go, label %loop, label %end\nend:")
    _store(lines, n, side, TILE_K // depth - 1)
    emit(" ret void\n}")
    emit("define internal void @bar() alwaysinline {\n"
         ' fence syncscope("workgroup") release\n call void @llvm.amdgcn.s.barrier()\n'
         ' fence syncscope("workgroup") acquire\n ret void\n}')  # fmt: skip
    emit("declare void @llvm.amdgcn.s.barrier()\ndeclare i32 @llvm.amdgcn.workitem.id.x()")
    emit("declare i32 @llvm.amdgcn.workgroup.id.x()\ndeclare i32 @llvm.amdgcn.workgroup.id.y()")
    kind = _mfma(arch)[1]
    name = _mfma(arch)[0].split("(")[0]
    emit(f"declare <16 x float> {name}({kind}, {kind}, <16 x float>, i32, i32, i32)")
    return "\n".join(lines)


def _fetch(lines: list[str], k: int, side: int, tile: int) -> None:
    """Each thread loads 8 elements of a row of A and of B, per 64 rows; %q is where they go in the LDS."""
    emit = lines.append
    for name, first in (("a", "%m0"), ("b", "%n0")):
        for r in range(side):
            p = f"{name}{r}"
            emit(f" %r{p} = add i32 %tr, {64 * r}\n %g{p} = add i32 %r{p}, {first}\n %o{p} = mul i32 %g{p}, {k}")
            emit(f" %x{p} = add i32 %o{p}, %k\n %y{p} = add i32 %x{p}, %tk8\n %z{p} = sext i32 %y{p} to i64")
            emit(f" %p{p} = getelementptr i16, ptr addrspace(1) %{name}, i64 %z{p}")
            emit(f" %v{p} = load <8 x i16>, ptr addrspace(1) %p{p}, align 16")
            base = 0 if name == "a" else tile * TILE_K
            emit(f" %s{p} = mul i32 %r{p}, {TILE_K}\n %u{p} = add i32 %s{p}, %tk8\n %w{p} = add i32 %u{p}, {base}")
            emit(f" %q{p} = getelementptr i16, ptr addrspace(3) @lds, i32 %w{p}")


def _mfma(arch: str) -> tuple[str, str]:
    if arch == "gfx950":
        return "@llvm.amdgcn.mfma.f32.32x32x16.bf16(<8 x bfloat>", "<8 x bfloat>"
    return "@llvm.amdgcn.mfma.f32.32x32x8bf16.1k(<4 x i16>", "<4 x i16>"


def _fragments(lines: list[str], step: int, depth: int, side: int, tile: int) -> None:
    """Lane l reads row l % 32, elements (l / 32) · depth / 2 and following."""
    kind = f"<{depth // 2} x {'bfloat' if depth == 16 else 'i16'}>"
    for name, wave, base in (("a", "%wm", 0), ("b", "%wn", tile * TILE_K)):
        for r in range(side):
            p = f"{name}{r}_{step}"
            lines.append(f" %f1{p} = mul i32 {wave}, {32 * side}\n %f2{p} = add i32 %f1{p}, {32 * r}")
            lines.append(f" %f3{p} = add i32 %f2{p}, %l31\n %f4{p} = mul i32 %f3{p}, {TILE_K}")
            lines.append(f" %f5{p} = mul i32 %half, {depth // 2}\n %f6{p} = add i32 %f4{p}, %f5{p}")
            lines.append(f" %f7{p} = add i32 %f6{p}, {base + depth * step}")
            lines.append(f" %fp{p} = getelementptr i16, ptr addrspace(3) @lds, i32 %f7{p}")
            lines.append(f" %f{p} = load {kind}, ptr addrspace(3) %fp{p}, align 8")


def _store(lines: list[str], n: int, side: int, last: int) -> None:
    """Register r of lane l: row 8 · (r / 4) + 4 · (l / 32) + r % 4, column l % 32."""
    for i in range(side * side):
        for r in range(16):
            p = f"{i}_{r}"
            row = 32 * (i // side) + 8 * (r // 4) + r % 4
            lines.append(f" %e{p} = extractelement <16 x float> %d{i}_{last}, i32 {r}")
            lines.append(f" %c1{p} = mul i32 %wm, {32 * side}\n %c2{p} = add i32 %c1{p}, {row}")
            lines.append(f" %c3{p} = shl i32 %half, 2\n %c4{p} = add i32 %c2{p}, %c3{p}\n %c5{p} = add i32 %c4{p}, %m0")
            lines.append(f" %c6{p} = mul i32 %wn, {32 * side}\n %c7{p} = add i32 %c6{p}, {32 * (i % side)}")
            lines.append(
                f" %c8{p} = add i32 %c7{p}, %l31\n %c9{p} = add i32 %c8{p}, %n0\n %ca{p} = mul i32 %c5{p}, {n}"
            )
            lines.append(
                f" %cb{p} = add i32 %ca{p}, %c9{p}\n %cc{p} = getelementptr float, ptr addrspace(1) %c, i32 %cb{p}"
            )
            lines.append(f" store float %e{p}, ptr addrspace(1) %cc{p}")
