// Two tiles of 1024 f16 copied straight into LDS, 4 bytes a lane; the first is used while the second is on its way.
// Every lane then holds elements that the other wave copied, which takes a barrier besides the wait.

// CHECK-LABEL: k:
// CHECK: s_mov_b32 m0
// CHECK-COUNT-4: buffer_load_dword {{.*}} lds
// CHECK-COUNT-4: buffer_load_dword {{.*}} lds
// CHECK: s_waitcnt vmcnt(4)
// CHECK-NEXT: s_barrier
// CHECK: ds_read
// The store of the first tile is younger than the copies of the second.
// CHECK: s_waitcnt vmcnt(1)
// CHECK: s_barrier
// CHECK: ds_read
// CHECK: s_endpgm

!T = !hkc_wave.lds<"1024:2 block 1024 strides 2048 order 0">

func.func @k(%A: !llvm.ptr<1>, %C: !llvm.ptr<1>) attributes {hkc.kernel, hkc.entry = "general", hkc.waves = 2 : i64} {
  %true = arith.constant true
  %lane = "hkc_wave.lane_id"() : () -> i32
  %wave = "hkc_wave.wave_id"() : () -> i32
  %c4 = arith.constant 4 : i32
  %c1024 = arith.constant 1024 : i32
  %part = arith.muli %wave, %c1024 : i32
  %inside = arith.muli %lane, %c4 : i32
  %mine = arith.addi %part, %inside : i32
  %bytes = arith.constant 4096 : i64
  %source = "hkc_wave.buffer"(%A, %bytes) : (!llvm.ptr<1>, i64) -> !hkc_wave.descriptor
  %tile0 = "hkc_wave.lds_alloc"() {offset = 0 : i64} : () -> !T
  %tile1 = "hkc_wave.lds_alloc"() {offset = 2048 : i64} : () -> !T

  %s0_0 = arith.constant 0 : i32
  %o0_0 = arith.addi %mine, %s0_0 : i32
  %d0_0 = arith.constant 0 : i32
  %p0_0 = arith.addi %part, %d0_0 : i32
  "hkc_wave.copy_to_lds"(%source, %o0_0, %tile0, %p0_0) {bytes = 4 : i64} : (!hkc_wave.descriptor, i32, !T, i32) -> ()
  %s0_1 = arith.constant 256 : i32
  %o0_1 = arith.addi %mine, %s0_1 : i32
  %d0_1 = arith.constant 256 : i32
  %p0_1 = arith.addi %part, %d0_1 : i32
  "hkc_wave.copy_to_lds"(%source, %o0_1, %tile0, %p0_1) {bytes = 4 : i64} : (!hkc_wave.descriptor, i32, !T, i32) -> ()
  %s0_2 = arith.constant 512 : i32
  %o0_2 = arith.addi %mine, %s0_2 : i32
  %d0_2 = arith.constant 512 : i32
  %p0_2 = arith.addi %part, %d0_2 : i32
  "hkc_wave.copy_to_lds"(%source, %o0_2, %tile0, %p0_2) {bytes = 4 : i64} : (!hkc_wave.descriptor, i32, !T, i32) -> ()
  %s0_3 = arith.constant 768 : i32
  %o0_3 = arith.addi %mine, %s0_3 : i32
  %d0_3 = arith.constant 768 : i32
  %p0_3 = arith.addi %part, %d0_3 : i32
  "hkc_wave.copy_to_lds"(%source, %o0_3, %tile0, %p0_3) {bytes = 4 : i64} : (!hkc_wave.descriptor, i32, !T, i32) -> ()
  "hkc_wave.async_mark"() : () -> ()
  %s1_0 = arith.constant 2048 : i32
  %o1_0 = arith.addi %mine, %s1_0 : i32
  %d1_0 = arith.constant 0 : i32
  %p1_0 = arith.addi %part, %d1_0 : i32
  "hkc_wave.copy_to_lds"(%source, %o1_0, %tile1, %p1_0) {bytes = 4 : i64} : (!hkc_wave.descriptor, i32, !T, i32) -> ()
  %s1_1 = arith.constant 2304 : i32
  %o1_1 = arith.addi %mine, %s1_1 : i32
  %d1_1 = arith.constant 256 : i32
  %p1_1 = arith.addi %part, %d1_1 : i32
  "hkc_wave.copy_to_lds"(%source, %o1_1, %tile1, %p1_1) {bytes = 4 : i64} : (!hkc_wave.descriptor, i32, !T, i32) -> ()
  %s1_2 = arith.constant 2560 : i32
  %o1_2 = arith.addi %mine, %s1_2 : i32
  %d1_2 = arith.constant 512 : i32
  %p1_2 = arith.addi %part, %d1_2 : i32
  "hkc_wave.copy_to_lds"(%source, %o1_2, %tile1, %p1_2) {bytes = 4 : i64} : (!hkc_wave.descriptor, i32, !T, i32) -> ()
  %s1_3 = arith.constant 2816 : i32
  %o1_3 = arith.addi %mine, %s1_3 : i32
  %d1_3 = arith.constant 768 : i32
  %p1_3 = arith.addi %part, %d1_3 : i32
  "hkc_wave.copy_to_lds"(%source, %o1_3, %tile1, %p1_3) {bytes = 4 : i64} : (!hkc_wave.descriptor, i32, !T, i32) -> ()
  "hkc_wave.async_mark"() : () -> ()

  %c6 = arith.constant 6 : i32
  %first = arith.shli %wave, %c6 : i32
  %number = arith.addi %first, %lane : i32
  %thread = arith.extui %number : i32 to i64
  %c16_wide = arith.constant 16 : i64
  %c2048 = arith.constant 2048 : i64
  %to0 = arith.muli %thread, %c16_wide : i64
  %to1 = arith.addi %to0, %c2048 : i64

  "hkc_wave.wait_async"() {pending = 1 : i64} : () -> ()
  "hkc_wave.barrier"() : () -> ()
  %v0 = "hkc_wave.lds_read"(%tile0) {layout = "1024 r(1 2 512) l(4 8 16 32 64 128) w(256)", fragment = 0 : i64} : (!T) -> vector<8xf16>
  "hkc_wave.global_store"(%v0, %C, %to0, %true) {align = 16 : i64} : (vector<8xf16>, !llvm.ptr<1>, i64, i1) -> ()

  "hkc_wave.wait_async"() {pending = 0 : i64} : () -> ()
  "hkc_wave.barrier"() : () -> ()
  %v1 = "hkc_wave.lds_read"(%tile1) {layout = "1024 r(1 2 512) l(4 8 16 32 64 128) w(256)", fragment = 0 : i64} : (!T) -> vector<8xf16>
  "hkc_wave.global_store"(%v1, %C, %to1, %true) {align = 16 : i64} : (vector<8xf16>, !llvm.ptr<1>, i64, i1) -> ()
  return
}
