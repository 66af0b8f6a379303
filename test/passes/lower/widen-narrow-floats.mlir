// RUN: distc-opt %s --drt-widen-narrow-floats --split-input-file | FileCheck %s

// Every result is rounded. float16 is the processor's to cast.
// CHECK-LABEL: @half
func.func @half(%x: f16, %y: f16) -> f16 {
  // CHECK-DAG: %[[X:.*]] = arith.extf %arg0 : f16 to f32
  // CHECK-DAG: %[[Y:.*]] = arith.extf %arg1 : f16 to f32
  // CHECK: %[[SUM:.*]] = arith.addf %[[X]], %[[Y]] : f32
  // CHECK: %[[ROUNDED:.*]] = arith.truncf %[[SUM]] : f32 to f16
  // CHECK: %[[AGAIN:.*]] = arith.extf %[[ROUNDED]]
  // CHECK: math.exp %[[AGAIN]] : f32
  %sum = arith.addf %x, %y : f16
  %z = math.exp %sum : f16
  return %z : f16
}

// -----

// Casts of bfloat16 are arithmetic on its bits.
// CHECK-LABEL: @brain
func.func @brain(%x: bf16, %y: f32) -> (i1, bf16) {
  // CHECK: arith.bitcast %arg0 : bf16 to i16
  // CHECK: arith.cmpf olt
  // CHECK-NOT: arith.extf
  // CHECK-NOT: arith.truncf
  // CHECK: arith.bitcast {{.*}} : i16 to bf16
  %zero = arith.constant 0.0 : bf16
  %less = arith.cmpf olt, %x, %zero : bf16
  %z = arith.truncf %y : f32 to bf16
  return %less, %z : i1, bf16
}

// -----

// What moves elements moves them as they are.
// CHECK-LABEL: @moved
func.func @moved(%c: i1, %x: bf16, %y: bf16) -> bf16 {
  // CHECK-NEXT: %[[Z:.*]] = arith.select %arg0, %arg1, %arg2 : bf16
  // CHECK-NEXT: return %[[Z]]
  %z = arith.select %c, %x, %y : bf16
  return %z : bf16
}
