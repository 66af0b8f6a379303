// RUN: distc-opt %s --split-input-file --drt-split-loops --canonicalize | FileCheck %s

// Two tensors one behind the other: a loop each, without branches.
// CHECK-LABEL: @joined
// CHECK-SAME: %[[A:.*]]: memref<4x3xf32>, %[[B:.*]]: memref<4x5xf32>, %[[C:.*]]: memref<4x8xf32>
// CHECK: scf.for %[[I:.*]] = %c0 to %c4
// CHECK: scf.for %[[J:.*]] = %c0 to %c3
// CHECK-NEXT: memref.load %[[A]][%[[I]], %[[J]]]
// CHECK: scf.for %[[J:.*]] = %c3 to %c8
// CHECK-NEXT: %[[K:.*]] = arith.subi %[[J]], %c3
// CHECK-NEXT: memref.load %[[B]][%[[I]], %[[K]]]
// CHECK-NOT: scf.if
drt.kernel @joined(%a: memref<4x3xf32>, %b: memref<4x5xf32>, %c: memref<4x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c4 step %c1 {
    scf.for %j = %c0 to %c8 step %c1 {
      %first = arith.cmpi ult, %j, %c3 : index
      %x = scf.if %first -> f32 {
        %y = memref.load %a[%i, %j] : memref<4x3xf32>
        scf.yield %y : f32
      } else {
        %k = arith.subi %j, %c3 : index
        %y = memref.load %b[%i, %k] : memref<4x5xf32>
        scf.yield %y : f32
      }
      memref.store %x, %c[%i, %j] : memref<4x8xf32>
    }
  }
  drt.return
}

// -----

// Without a sign what lies before the first element is large: padding on both sides is three loops.
// CHECK-LABEL: @padded
// CHECK: scf.for %{{.*}} = %c0 to %c2
// CHECK-NEXT: memref.store %cst
// CHECK: scf.for %[[I:.*]] = %c2 to %c7
// CHECK-NEXT: arith.subi %[[I]], %c2
// CHECK: scf.for %{{.*}} = %c7 to %c9
// CHECK-NEXT: memref.store %cst
// CHECK-NOT: scf.if
drt.kernel @padded(%a: memref<5xf32>, %c: memref<9xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %c9 = arith.constant 9 : index
  scf.for %i = %c0 to %c9 step %c1 {
    %from = arith.subi %i, %c2 : index
    %inside = arith.cmpi ult, %from, %c5 : index
    %x = scf.if %inside -> f32 {
      %y = memref.load %a[%from] : memref<5xf32>
      scf.yield %y : f32
    } else {
      scf.yield %zero : f32
    }
    memref.store %x, %c[%i] : memref<9xf32>
  }
  drt.return
}

// -----

// Of a bound that is no number nothing is known.
// CHECK-LABEL: @unknown
// CHECK: scf.if
drt.kernel @unknown(%bound: memref<index>, %a: memref<4xf32>, %c: memref<4xf32>) {
  %n = memref.load %bound[] : memref<index>
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %inside = arith.cmpi ult, %i, %n : index
    %x = scf.if %inside -> f32 {
      %y = memref.load %a[%i] : memref<4xf32>
      scf.yield %y : f32
    } else {
      scf.yield %zero : f32
    }
    memref.store %x, %c[%i] : memref<4xf32>
  }
  drt.return
}
