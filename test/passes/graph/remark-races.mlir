// RUN: distc-opt %s --split-input-file --dfg-remark-races --verify-diagnostics

// A second read beside the update; what the update is computed of is read before it, what waits for it behind it.
dfg.variable @w : tensor<2xf32>
dfg.graph attributes {train_op = "update", fetches = ["late:0", "beside:0"]} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<2xf32>> loc("w")
  %value = dfg.read_variable %w : (!dfg.ref<tensor<2xf32>>) -> tensor<2xf32> loc("value")
  %next = dfg.square %value : (tensor<2xf32>) -> tensor<2xf32> loc("next")
  %beside = dfg.read_variable %w : (!dfg.ref<tensor<2xf32>>) -> tensor<2xf32> loc("beside")
  // expected-remark @unknown {{variable 'w': no edge says whether node 'beside' or 'update' comes first, so TensorFlow may give other numbers than this order, which is taken; a control dependency would fix it}}
  dfg.assign %w, %next : (!dfg.ref<tensor<2xf32>>, tensor<2xf32>) -> () loc("update")
  %late = dfg.read_variable %w {control = ["update"]} : (!dfg.ref<tensor<2xf32>>) -> tensor<2xf32> loc("late")
}

// -----

// Two updates, as of a moving mean in a layer that is called twice; two that add up may come in any order, and what no step runs does not count.
dfg.variable @mean : tensor<2xf32>
dfg.variable @count : tensor<f32>
dfg.graph attributes {train_op = "train"} {
  %mean = dfg.var_handle @mean : !dfg.ref<tensor<2xf32>> loc("mean")
  %count = dfg.var_handle @count : !dfg.ref<tensor<f32>> loc("count")
  %one = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("one")
  %a = dfg.const dense<1.0> : tensor<2xf32> : tensor<2xf32> loc("a")
  %unused = dfg.read_variable %mean : (!dfg.ref<tensor<2xf32>>) -> tensor<2xf32> loc("unused")
  %0 = dfg.read_variable %mean : (!dfg.ref<tensor<2xf32>>) -> tensor<2xf32> loc("read_0")
  %1 = dfg.read_variable %mean : (!dfg.ref<tensor<2xf32>>) -> tensor<2xf32> loc("read_1")
  %delta_0 = dfg.sub %0, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> loc("delta_0")
  %delta_1 = dfg.mul %1, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> loc("delta_1")
  // expected-remark @unknown {{node 'read_1' or 'update_0' comes first, so TensorFlow may give other numbers than this order, which is taken (and 1 more pair of nodes)}}
  dfg.assign_sub %mean, %delta_0 : (!dfg.ref<tensor<2xf32>>, tensor<2xf32>) -> () loc("update_0")
  dfg.assign_sub %mean, %delta_1 : (!dfg.ref<tensor<2xf32>>, tensor<2xf32>) -> () loc("update_1")
  dfg.assign_add %count, %one : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("add_0")
  dfg.assign_add %count, %one : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("add_1")
  dfg.group {control = ["update_0", "update_1", "add_0", "add_1"]} : () -> () loc("train")
}

// -----

// The loss is of the last iteration, and so is the gradient: the loop's read comes first.
dfg.variable @w : tensor<2xf32>
dfg.graph attributes {train_op = "update"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<2xf32>> loc("w")
  %read = dfg.read_variable %w : (!dfg.ref<tensor<2xf32>>) -> tensor<2xf32> loc("read")
  %zero = dfg.const dense<0.0> : tensor<2xf32> : tensor<2xf32> loc("zero")
  %merge:2 = dfg.opaque "Merge"(%zero, %next) : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<i32>) loc("merge")
  %exit = dfg.opaque "Exit"(%merge#0) : (tensor<2xf32>) -> tensor<2xf32> loc("exit")
  %sum = dfg.add_v2 %merge#0, %read : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> loc("sum")
  %next = dfg.opaque "NextIteration"(%sum) : (tensor<2xf32>) -> tensor<2xf32> loc("next")
  dfg.assign %w, %exit : (!dfg.ref<tensor<2xf32>>, tensor<2xf32>) -> () loc("update")
}

// -----

// What is read of a reference is its memory, which the gradient's node looks at behind the update, or before it.
dfg.variable @w : tensor<2xf32> {kind = "ref"}
dfg.graph attributes {train_op = "update", loss = "user:0"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<2xf32>> loc("w")
  %read = dfg.read_variable %w {implicit} : (!dfg.ref<tensor<2xf32>>) -> tensor<2xf32>
  %value = dfg.identity %read : (tensor<2xf32>) -> tensor<2xf32> loc("w/read")
  %next = dfg.square %value : (tensor<2xf32>) -> tensor<2xf32> loc("next")
  %user = dfg.neg %value : (tensor<2xf32>) -> tensor<2xf32> loc("user")
  // expected-remark @unknown {{variable 'w': no edge says whether node 'user' or 'update' comes first}}
  dfg.assign %w, %next : (!dfg.ref<tensor<2xf32>>, tensor<2xf32>) -> () loc("update")
}
