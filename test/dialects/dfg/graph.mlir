// RUN: distc-opt %s | distc-opt | FileCheck %s
// RUN: distc-opt %s --mlir-print-op-generic | distc-opt | FileCheck %s
// RUN: distc-opt %s --emit-bytecode | distc-opt | FileCheck %s

// CHECK: dfg.graph attributes {candidates = {init_op = ["a", "b"]}, dist.role = "chief", feeds = ["x:0"], fetches = ["y:0", "z"], loss = "loss:0"
// CHECK-SAME: saver = {filename = "save/Const:0", restore = "save/restore_all", save = "save/control_dependency:0"}
// CHECK-SAME: smallest_batch = 4 : i64, stripped, summaries = {"loss:0" = "loss"}, train_op = "train", versions = {producer = 22 : i64}}
dfg.graph attributes {train_op = "train", loss = "loss:0", fetches = ["y:0", "z"], feeds = ["x:0"], candidates = {init_op = ["a", "b"]},
                      summaries = {"loss:0" = "loss"}, smallest_batch = 4, versions = {producer = 22}, stripped, dist.role = "chief",
                      saver = {filename = "save/Const:0", save = "save/control_dependency:0", restore = "save/restore_all"}} {
}
// CHECK: dfg.graph {
dfg.graph {
}
