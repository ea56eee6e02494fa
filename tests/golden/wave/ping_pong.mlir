// Ping-pong of two groups of four waves: a conditional barrier puts the second group one phase behind the first, so
// that while one group reads its operands from LDS the other, at higher priority, keeps the matrix unit busy.
// A is 128x64, B is 64x16, both f16 and dense; every lane stores its 4 accumulators of its wave's 16x16 tile.

// CHECK-LABEL: k:
// CHECK: ds_write_b128
// CHECK: s_barrier
// The second group waits alone.
// CHECK: s_cbranch
// CHECK: s_barrier
// CHECK-COUNT-2: ds_read
// CHECK: s_barrier
// CHECK: s_setprio 1
// CHECK: v_mfma_f32_16x16x16_f16
// CHECK: s_setprio 0
// CHECK: s_barrier
// CHECK: s_setprio 1
// CHECK: v_mfma_f32_16x16x16_f16
// CHECK: s_setprio 1
// CHECK: v_mfma_f32_16x16x16_f16
// CHECK: s_setprio 1
// CHECK: v_mfma_f32_16x16x16_f16
// CHECK: s_setprio 0
// CHECK: s_barrier
// CHECK: s_endpgm

!A = !hkc_wave.lds<"128x64:2 block 128x64 strides 16384,16384 order 1,0 xor 4^7,5^8,6^9">
!B = !hkc_wave.lds<"64x16:2 block 1x16 strides 32,32 order 1,0">

func.func @k(%A: !llvm.ptr<1>, %B: !llvm.ptr<1>, %C: !llvm.ptr<1>) attributes {hkc.kernel, hkc.entry = "general", hkc.waves = 8 : i64} {
  %true = arith.constant true
  %lane = "hkc_wave.lane_id"() : () -> i32
  %wave = "hkc_wave.wave_id"() : () -> i32
  %c6 = arith.constant 6 : i32
  %first = arith.shli %wave, %c6 : i32
  %number = arith.addi %first, %lane : i32
  %thread = arith.extui %number : i32 to i64
  %c4 = arith.constant 4 : i64
  %c16 = arith.constant 16 : i64
  %c8192 = arith.constant 8192 : i64
  %at4 = arith.muli %thread, %c4 : i64
  %at16 = arith.muli %thread, %c16 : i64
  %at16_next = arith.addi %at16, %c8192 : i64

  // Global memory to LDS, 16 bytes a lane.
  %A_lds = "hkc_wave.lds_alloc"() {offset = 0 : i64} : () -> !A
  %B_lds = "hkc_wave.lds_alloc"() {offset = 16384 : i64} : () -> !B
  %ga0 = "hkc_wave.global_load"(%A, %at16, %true) {align = 16 : i64} : (!llvm.ptr<1>, i64, i1) -> vector<8xf16>
  %ga1 = "hkc_wave.global_load"(%A, %at16_next, %true) {align = 16 : i64} : (!llvm.ptr<1>, i64, i1) -> vector<8xf16>
  %gb = "hkc_wave.global_load"(%B, %at4, %true) {align = 4 : i64} : (!llvm.ptr<1>, i64, i1) -> vector<2xf16>
  "hkc_wave.lds_write"(%ga0, %A_lds) {layout = "64x64 r(0,1 0,2 0,4) l(0,8 0,16 0,32 1,0 2,0 4,0) w(8,0 16,0 32,0)", fragment = 0 : i64} : (vector<8xf16>, !A) -> ()
  "hkc_wave.lds_write"(%ga1, %A_lds) {layout = "64x64 r(0,1 0,2 0,4) l(0,8 0,16 0,32 1,0 2,0 4,0) w(8,0 16,0 32,0)", fragment = 1 : i64} : (vector<8xf16>, !A) -> ()
  "hkc_wave.lds_write"(%gb, %B_lds) {layout = "64x16 r(0,1) l(0,2 0,4 0,8 1,0 2,0 4,0) w(8,0 16,0 32,0)", fragment = 0 : i64} : (vector<2xf16>, !B) -> ()
  "hkc_wave.wait"() {vm = -1 : i64, lgkm = 0 : i64} : () -> ()
  "hkc_wave.barrier"() : () -> ()

  %half = arith.constant 4 : i32
  %second = arith.cmpi uge, %wave, %half : i32
  %leading = arith.cmpi ult, %wave, %half : i32
  "hkc_wave.barrier_if"(%second) : (i1) -> ()
  %zero = arith.constant dense<0.0> : vector<4xf32>

  // Step 0: one group of waves reads while the other multiplies.
  %a0 = "hkc_wave.lds_read"(%A_lds) {layout = "128x16 r(0,1 0,2) l(1,0 2,0 4,0 8,0 0,4 0,8) w(16,0 32,0 64,0)", fragment = 0 : i64} : (!A) -> vector<4xf16>
  %b0 = "hkc_wave.lds_read"(%B_lds) {layout = "16x16 r(1,0 2,0) l(0,1 0,2 0,4 0,8 4,0 8,0) w(0,0 0,0 0,0)", fragment = 0 : i64} : (!B) -> vector<4xf16>
  "hkc_wave.schedule_group"() {kind = "ds_read", size = 2 : i64, group = 0 : i64} : () -> ()
  "hkc_wave.wait"() {vm = -1 : i64, lgkm = 0 : i64} : () -> ()
  "hkc_wave.barrier"() : () -> ()
  "hkc_wave.priority"() {level = 1 : i64} : () -> ()
  %c0 = "hkc_wave.mfma"(%a0, %b0, %zero) {instruction = "v_mfma_f32_16x16x16_f16"} : (vector<4xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
  "hkc_wave.schedule_group"() {kind = "mfma_wmma", size = 1 : i64, group = 0 : i64} : () -> ()
  "hkc_wave.priority"() {level = 0 : i64} : () -> ()
  "hkc_wave.barrier"() : () -> ()

  // Step 1: one group of waves reads while the other multiplies.
  %a1 = "hkc_wave.lds_read"(%A_lds) {layout = "128x16 r(0,1 0,2) l(1,0 2,0 4,0 8,0 0,4 0,8) w(16,0 32,0 64,0)", fragment = 1 : i64} : (!A) -> vector<4xf16>
  %b1 = "hkc_wave.lds_read"(%B_lds) {layout = "16x16 r(1,0 2,0) l(0,1 0,2 0,4 0,8 4,0 8,0) w(0,0 0,0 0,0)", fragment = 1 : i64} : (!B) -> vector<4xf16>
  "hkc_wave.schedule_group"() {kind = "ds_read", size = 2 : i64, group = 0 : i64} : () -> ()
  "hkc_wave.wait"() {vm = -1 : i64, lgkm = 0 : i64} : () -> ()
  "hkc_wave.barrier"() : () -> ()
  "hkc_wave.priority"() {level = 1 : i64} : () -> ()
  %c1 = "hkc_wave.mfma"(%a1, %b1, %c0) {instruction = "v_mfma_f32_16x16x16_f16"} : (vector<4xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
  "hkc_wave.schedule_group"() {kind = "mfma_wmma", size = 1 : i64, group = 0 : i64} : () -> ()
  "hkc_wave.priority"() {level = 0 : i64} : () -> ()
  "hkc_wave.barrier"() : () -> ()

  // Step 2: one group of waves reads while the other multiplies.
  %a2 = "hkc_wave.lds_read"(%A_lds) {layout = "128x16 r(0,1 0,2) l(1,0 2,0 4,0 8,0 0,4 0,8) w(16,0 32,0 64,0)", fragment = 2 : i64} : (!A) -> vector<4xf16>
  %b2 = "hkc_wave.lds_read"(%B_lds) {layout = "16x16 r(1,0 2,0) l(0,1 0,2 0,4 0,8 4,0 8,0) w(0,0 0,0 0,0)", fragment = 2 : i64} : (!B) -> vector<4xf16>
  "hkc_wave.schedule_group"() {kind = "ds_read", size = 2 : i64, group = 0 : i64} : () -> ()
  "hkc_wave.wait"() {vm = -1 : i64, lgkm = 0 : i64} : () -> ()
  "hkc_wave.barrier"() : () -> ()
  "hkc_wave.priority"() {level = 1 : i64} : () -> ()
  %c2 = "hkc_wave.mfma"(%a2, %b2, %c1) {instruction = "v_mfma_f32_16x16x16_f16"} : (vector<4xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
  "hkc_wave.schedule_group"() {kind = "mfma_wmma", size = 1 : i64, group = 0 : i64} : () -> ()
  "hkc_wave.priority"() {level = 0 : i64} : () -> ()
  "hkc_wave.barrier"() : () -> ()

  // Step 3: one group of waves reads while the other multiplies.
  %a3 = "hkc_wave.lds_read"(%A_lds) {layout = "128x16 r(0,1 0,2) l(1,0 2,0 4,0 8,0 0,4 0,8) w(16,0 32,0 64,0)", fragment = 3 : i64} : (!A) -> vector<4xf16>
  %b3 = "hkc_wave.lds_read"(%B_lds) {layout = "16x16 r(1,0 2,0) l(0,1 0,2 0,4 0,8 4,0 8,0) w(0,0 0,0 0,0)", fragment = 3 : i64} : (!B) -> vector<4xf16>
  "hkc_wave.schedule_group"() {kind = "ds_read", size = 2 : i64, group = 0 : i64} : () -> ()
  "hkc_wave.wait"() {vm = -1 : i64, lgkm = 0 : i64} : () -> ()
  "hkc_wave.barrier"() : () -> ()
  "hkc_wave.priority"() {level = 1 : i64} : () -> ()
  %c3 = "hkc_wave.mfma"(%a3, %b3, %c2) {instruction = "v_mfma_f32_16x16x16_f16"} : (vector<4xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
  "hkc_wave.schedule_group"() {kind = "mfma_wmma", size = 1 : i64, group = 0 : i64} : () -> ()
  "hkc_wave.priority"() {level = 0 : i64} : () -> ()
  "hkc_wave.barrier"() : () -> ()

  "hkc_wave.barrier_if"(%leading) : (i1) -> ()
  "hkc_wave.global_store"(%c3, %C, %at16, %true) {align = 16 : i64} : (vector<4xf32>, !llvm.ptr<1>, i64, i1) -> ()
  return
}
