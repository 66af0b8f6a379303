//===- Passes.td - Passes that distribute a graph --------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTRIBUTE_PASSES
#define DISTRIBUTE_PASSES

include "mlir/Pass/PassBase.td"

def DistApplyStrategy : Pass<"dist-apply-strategy", "mlir::ModuleOp"> {
  let summary = "Reads or builds the strategy, and says who runs the graph and who holds its variables";
  let description = [{
    Checks the strategy against the graph and the resources, keeps it in the module (`dist.strategy`) and on each variable what it decides for that
    one (`dist.sync`; `dist.parts` where it is to be split), and adds the topology: a task a
    host with replicas, or a task a replica with `one-process-per-replica`; then the servers that `ps` asks for, from host to host, and one
    for each other host that the strategy places variables on (`reduction_destination`) although no replica is there. A server has no
    replicas. A variable that a server holds, one that was asked for or that of a host, is marked with `dist.place`, and its slots alike;
    a variable that the strategy partitions is not yet.

    Before:
    ```mlir
    dfg.variable @w : tensor<64x10xf32> {trainable}
    dfg.variable @"w/Momentum" : tensor<64x10xf32>
    ```
    After, with `replicas=2 ps=1` and a strategy that places `w` on `ps:0`:
    ```mlir
    dist.topology @cluster replicas 2 [
      #dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>,
      #dist.task<"ps" 0 on "localhost" devices [] replicas 0 from 2>]
    dfg.variable @w : tensor<64x10xf32> {dist.place = #dist.place<"ps" 0>, dist.sync = #dist.sync<server at "ps:0">, trainable}
    dfg.variable @"w/Momentum" : tensor<64x10xf32> {dist.place = #dist.place<"ps" 0>}
    ```
  }];
  let options = [
    Option<"strategy", "strategy", "std::string", "\"AllReduce\"", "A file, or NAME[:key=value,...]">,
    Option<"resources", "resources", "std::string", "\"\"", "Resource file (YAML)">,
    Option<"replicas", "replicas", "int", "0", "Replicas on this machine, instead of a resource file">,
    Option<"servers", "ps", "int", "0", "Parameter servers on this machine">,
    Option<"oneProcessPerReplica", "one-process-per-replica", "bool", "false", "A task for each replica">,
  ];
  let dependentDialects = ["::distc::dist::DISTDialect"];
}

def DistPartitionVariables : Pass<"dist-partition-variables", "mlir::ModuleOp"> {
  let summary = "Splits variables into shards, as the strategy's partitioners say";
  let description = [{
    A variable with a partitioner ("4,1": four shards along the first axis; sizes that do not divide differ by one) becomes a variable a shard,
    `w/part_0`, ..., each marked with the slice that it is (`dist.slice`) and, where a server holds it, its place. Its slots are split alike.
    The strategy has an entry a shard after it (from `part_config`), and no partitioner: later passes know shards only, as variables.

    - A read becomes reads of the shards and their concatenation.
    - A dense gradient is split right after it is made, an assigned value alike: a random initial value is computed whole, so that it is
      the same with and without shards. What else uses the gradient (a global norm) sees it whole.
    - Of a sparse gradient each shard of rows takes those that it owns (`dist.own_rows`); shards of columns take a part of each row.
    - Rows read by index come from the shard that owns them: each shard gives rows for all indices, of which those that it owns are selected
      (sizes then do not depend on data). Shards of columns are joined.
    - Savers keep the whole variable's name, with a slice a shard, so that checkpoints go to the original graph and back. The collections of
      variables that are kept for export have an entry a shard, with its slice.
    - The name of a node that is split stays: it is that of the concatenation, or of a group that waits for all shards. Nodes of a shard
      are named as in TensorFlow, `w/part_0/Assign`.

    - A loop, a condition or a call that only reads a variable is given its value, and runs copies of its functions that take values.

    What uses a variable in a way that cannot be split is an error that names it.

    Before, with partitioner "2,1" of `w`:
    ```mlir
    dfg.variable @w : tensor<5x3xf32> {trainable}
    %h = dfg.var_handle @w : !dfg.ref<tensor<5x3xf32>>
    %w = dfg.read_variable %h : (!dfg.ref<tensor<5x3xf32>>) -> tensor<5x3xf32>
    dfg.apply_gradient_descent %h, %lr, %g : (!dfg.ref<tensor<5x3xf32>>, tensor<f32>, tensor<5x3xf32>) -> () loc("update")
    ```
    After:
    ```mlir
    dfg.variable @"w/part_0" : tensor<3x3xf32> {dist.slice = #dist.slice<"w" [5, 3] at [0, 0]>, trainable}
    dfg.variable @"w/part_1" : tensor<2x3xf32> {dist.slice = #dist.slice<"w" [5, 3] at [3, 0]>, trainable}
    %h0 = dfg.var_handle @"w/part_0" : !dfg.ref<tensor<3x3xf32>>
    %h1 = dfg.var_handle @"w/part_1" : !dfg.ref<tensor<2x3xf32>>
    %w0 = dfg.read_variable %h0 : (!dfg.ref<tensor<3x3xf32>>) -> tensor<3x3xf32>
    %w1 = dfg.read_variable %h1 : (!dfg.ref<tensor<2x3xf32>>) -> tensor<2x3xf32>
    %w = dfg.concat_v2 %w0, %w1, %axis : (tensor<3x3xf32>, tensor<2x3xf32>, tensor<i32>) -> tensor<5x3xf32>
    %gs:2 = dfg.split_v %g, %sizes, %axis : (tensor<5x3xf32>, tensor<2xi64>, tensor<i32>) -> (tensor<3x3xf32>, tensor<2x3xf32>)
    dfg.apply_gradient_descent %h0, %lr, %gs#0 : (!dfg.ref<tensor<3x3xf32>>, tensor<f32>, tensor<3x3xf32>) -> () loc("update/part_0")
    dfg.apply_gradient_descent %h1, %lr, %gs#1 : (!dfg.ref<tensor<2x3xf32>>, tensor<f32>, tensor<2x3xf32>) -> () loc("update/part_1")
    dfg.group {control = ["update/part_0", "update/part_1"]} : () -> () loc("update")
    ```
  }];
  let dependentDialects = ["::distc::dist::DISTDialect"];
}

def DistPassServedValues : Pass<"dist-pass-served-values", "mlir::ModuleOp"> {
  let summary = "Kept control flow is given the values of variables that servers hold";
  let description = [{
    A condition, a loop or a call of the step that an export keeps as it is, and that only reads a variable of a server, is given its value,
    and runs copies of its functions that take values. With the handle it would be placed on the server as a whole, or read there in every
    iteration; and its last nodes on the server may still run when another worker ends its step, whose collectives go by the same step
    number, and takes away what the server holds for that number.

    Before, where the server 0 holds `w`:
    ```mlir
    %r = dfg.opaque "If"(%c, %h) {...} : (tensor<i1>, !dfg.ref<tensor<4xf32>>) -> tensor<4xf32>
    ```
    After:
    ```mlir
    %w = dfg.read_variable %h : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("w/value")
    %r = dfg.opaque "If"(%c, %w) {...} : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
}

def DistSeparateRows : Pass<"dist-separate-rows", "mlir::ModuleOp"> {
  let summary = "A tensor of rows for each of several tables";
  let description = [{
    Rows are joined over the replicas together with their indices. Where the gradients of several tables are the same rows by other indices (rows
    of a table of users and of one of items are added up), each further table is given a tensor of its own, and what leads from it to its update.

    Before:
    ```mlir
    dfg.scatter_sub %users, %user_ids, %rows : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> ()
    dfg.scatter_sub %items, %item_ids, %rows : (!dfg.ref<tensor<5x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update")
    ```
    After:
    ```mlir
    %shape = dfg.shape %rows : (tensor<?x4xf32>) -> tensor<2xi32> loc("update/rows/shape")
    %own = dfg.reshape %rows, %shape : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<?x4xf32> loc("update/rows")
    dfg.scatter_sub %users, %user_ids, %rows : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> ()
    dfg.scatter_sub %items, %item_ids, %own : (!dfg.ref<tensor<5x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update")
    ```
  }];
}

def DistOpenBatch : Pass<"dist-open-batch", "mlir::ModuleOp"> {
  let summary = "Of a graph that fixes its batch, the number of rows is the whole batch's";
  let description = [{
    Where placeholders fix the batch, and `batch` is their number, each of N replicas is given one of N parts of so many rows, and the graph
    is what one device computes of all of them: also where it cuts them, takes them one by one, or has them meet. (Of another `batch` each replica
    has so many rows, and the numbers of the graph that are the batch's are N times as large.) What is fed is reshaped to all rows, which
    `dist-couple-replicas` gathers; nodes that may take the replica's rows instead do.
    ```mlir
    %x = dfg.placeholder : () -> tensor<8x3xf32>                    // %x = dfg.placeholder : () -> tensor<?x3xf32>
    %h = dfg.tanh %x : (tensor<8x3xf32>) -> tensor<8x3xf32>         // %h = dfg.tanh %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
    %r:8 = dfg.unpack %h                                            // %all = dfg.reshape %h, [8, 3]
                                                                    // %r:8 = dfg.unpack %all
    ```
  }];
  let options = [Option<"batch", "batch", "int64_t", "0", "the size of the whole batch">];
}

def DistMarkBatchUpdates : Pass<"dist-mark-batch-updates", "mlir::ModuleOp"> {
  let summary = "Marks updates that happen at each batch where gradients are accumulated";
  let description = [{
    With `accumulate_steps=k` an update that a gradient leads to happens once for k batches. One that sees of a batch what the loss is
    computed from, or what else is no gradient (the moving averages of a batch normalization, a metric, a queue of negatives), happens at
    each of them, as if nothing were accumulated: it is marked with `dist.each_batch`. Gradients are what the loss is not computed from, but, also by
    way of slots, updates of variables that the strategy has entries for, or that the loss depends on.

    An update that waits, by data, by order or for a variable, for one that happens once for all batches does so too, and so does one on a
    server: it sees the sum or mean of the batches. Without a loss nothing is known, and nothing is marked.

    ```mlir
    dfg.assign_sub %moving, %change : ...                       // dfg.assign_sub %moving, %change {dist.each_batch} : ...
    dfg.apply_gradient_descent %kernel, %rate, %gradient : ...  // as it is
    ```
  }];
}

def DistCoupleReplicas : Pass<"dist-couple-replicas", "mlir::ModuleOp"> {
  let summary = "Puts collectives where values of a step depend on other replicas' examples";
  let description = [{
    What an update or a fetch depends on has one of the forms of the batch's flow (BatchFlow.h): replicated, sharded, partial. Where an
    operation has no rule for the forms of its operands, they are given another one, by what costs least:

    - a sum or mean over the batch that something other than a later sum needs (a batch normalization's statistics, the sum of a
      loss's weights) is all-reduced where it is made, and replicated from there on; those that are ready together are one collective;
    - a value that all replicas have, with the rows of the whole batch, meets a replica's rows as the replica's part of it (`dist.take_rows`);
    - a maximum over the batch and the like is that of the replicas' own ones, which are gathered;
    - rows that meet other replicas' rows, or whose place in the batch counts, are gathered (`dist.all_gather`): one of the
      operands where that is enough (the other side of a batch x batch matrix), else all, and every replica computes the same;
    - sizes are the whole batch's (`dist.whole_size`, `dist.rescale`).

    Values of float16 that were divided by the share's size are divided by the number of replicas where they become float16, and multiplied
    where they leave it: N times what one device has, a scaled loss's gradients would overflow. `tf.squeeze` without axes is given those that
    the whole batch's shape has of size 1.

    What has a rule already stays as it is, and so does what only leads to updates (clipping by a global norm), whose gradients are reduced by
    dist-insert-synchronizers. With `coupling=replica` (`dist.coupling` on the module) nothing else is done. Where replicas do not wait for each other
    in every step (staleness, backup workers, asynchronous servers) the module is given that attribute, with a remark, unless the strategy says
    `coupling=whole`.

    Before:
    ```mlir
    %mean = dfg.mean %x, %axes : (tensor<?x8xf32>, tensor<1xi32>) -> tensor<8xf32> loc("mean")
    %y = dfg.sub %x, %mean : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    ```
    After:
    ```mlir
    %mean = dfg.mean %x, %axes : (tensor<?x8xf32>, tensor<1xi32>) -> tensor<8xf32> loc("mean")
    %all = dist.all_reduce mean bucket 0 group -1 (%mean) variables ["mean"] {coupling} : tensor<8xf32>
    %y = dfg.sub %x, %all : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    ```
  }];
  let dependentDialects = ["::distc::dist::DISTDialect", "::distc::dfg::DFGDialect"];
}

def DistReplicate : Pass<"dist-replicate", "mlir::ModuleOp"> {
  let summary = "Says which part of the batch each replica is given";
  let description = [{
    The program stands once, whatever the number of replicas (SPMD). Each placeholder is marked: `sharded` where its first size is the
    batch, else `whole`. Random nodes whose result has the batch's axis first are marked with `dist.seed`: each replica draws its rows of
    what one replica would draw for the whole batch.

    A graph without any placeholder whose first size is open keeps its batch in each replica: there the batch is the first size that
    all placeholders of rank 1 and more have in common.

    Variables, and updates that depend on no batch (the global step), are shared and happen once.

    Before:
    ```mlir
    dfg.graph {
      %x = dfg.placeholder : () -> tensor<?x64xf32> loc("x")
      %lr = dfg.placeholder : () -> tensor<f32> loc("lr")
    }
    ```
    After:
    ```mlir
    dfg.graph {
      %x = dfg.placeholder {dist.feed = "sharded"} : () -> tensor<?x64xf32> loc("x")
      %lr = dfg.placeholder {dist.feed = "whole"} : () -> tensor<f32> loc("lr")
    }
    ```
  }];
  let dependentDialects = ["::distc::dist::DISTDialect"];
}

def DistFollowServers : Pass<"dist-follow-servers", "mlir::ModuleOp"> {
  let summary = "What is computed from servers' new values is held by a server as well";
  let description = [{
    A moving average, a target network's copy, an optimizer's slot that is written out: no entry of the strategy names such a variable, and its update takes
    the value that a server's update of the same step has left. Workers do not know when that is there; the chief does. So the variable is held by that
    server (the first of several): the chief updates it once a step, and workers pull it.

    Before:
    ```mlir
    dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"ps" 0>, trainable}
    dfg.variable @average : tensor<4xf32>
    ...
    dfg.apply_gradient_descent %w, %lr, %g ... loc("update")
    %new = dfg.read_variable %w {control = ["update"]}
    dfg.assign %average, %new
    ```
    After:
    ```mlir
    dfg.variable @average : tensor<4xf32> {dist.place = #dist.place<"ps" 0>}
    ```
  }];
}

def DistColocateServers : Pass<"dist-colocate-servers", "mlir::ModuleOp"> {
  let summary = "Servers share the processes of their hosts' workers, as executables have them";
  let description = [{
    Of synchronous servers it is known what they compute: one update from the gradients of all replicas. So the program can stand once for all tasks, and
    a worker that owns a variable does what its server would. The servers of a host are given to its workers in turn, leave the topology, and
    `dist.place` of what they hold names the worker. A server on a host without replicas is an error where it holds anything, and so is what
    needs servers that serve on their own: asynchronous updates and backup workers.

    Before:
    ```mlir
    dist.topology @cluster replicas 2 [
      #dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0"] replicas 1 from 0>,
      #dist.task<"worker" 1 on "localhost" devices ["localhost:CPU:1"] replicas 1 from 1>,
      #dist.task<"ps" 0 on "localhost" devices [] replicas 0 from 2>, #dist.task<"ps" 1 on "localhost" devices [] replicas 0 from 2>]
    dfg.variable @w : tensor<64x10xf32> {dist.place = #dist.place<"ps" 1>, trainable}
    ```
    After:
    ```mlir
    dist.topology @cluster replicas 2 [
      #dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0"] replicas 1 from 0>,
      #dist.task<"worker" 1 on "localhost" devices ["localhost:CPU:1"] replicas 1 from 1>]
    dfg.variable @w : tensor<64x10xf32> {dist.place = #dist.place<"worker" 1>, trainable}
    ```
    With `where-supported` such servers are no error, and all stay what they are.
  }];
  let options = [Option<"whereSupported", "where-supported", "bool", "false", "Leaves servers alone that cannot share processes">];
  let dependentDialects = ["::distc::dist::DISTDialect"];
}

def DistInsertSynchronizers : Pass<"dist-insert-synchronizers", "mlir::ModuleOp"> {
  let summary = "Synchronizes raw gradients between backward and updates";
  let description = [{
    Walks back from every update to the first values that are sums or means over the batch (BatchFlow.h), and reduces them there, so that
    what comes after (clipping by a global norm, weight decay, scaling) sees the whole batch's gradient. A value is reduced once,
    whatever the number of updates it is used by; a mean of the batch by the mean, a sum by the sum.

    Gradients of one group of the strategy, of one element type and reduction, are one bucket, in the order in which they become ready;
    its `dist.all_reduce` stands after the last of them. With `bucket-mb` a group whose gradients travel (between tasks; with `each-apart` between
    replicas) is several buckets, from the last variable back, whose gradient is ready first, each of so many MiB or one gradient and the first of 1 MiB:
    one is on its way while the next is computed. What depends on its group (aggregators, top_k, the factors that power_sgd begins with) keeps it. What uses reduced values, and what must stay after that by effects and control
    edges, moves behind the rest of the block. A gradient that depends on an update of the same step cannot wait for it in one
    bucket: it begins another.

    A node that also feeds the forward pass (a batch normalization's statistic) is copied: forward keeps the replica's own value.

    How a variable's gradients are synchronized is what its `dist.sync` says:

    - *All-reduce*, with the entry's compression or aggregator.
    - *Sparse gradients*: the first (indices, values) on the way to a sparse update, both with the batch's axis, are joined by
      `dist.all_gather_slices`, so that the optimizer's deduplication, a scaling or a norm sees the rows of all replicas. Rows that were
      added to a whole table on the way are a dense gradient.
    - *Sharded updates*: gradients arrive by `dist.reduce_scatter` (stage 2, where nothing but the update uses them) or are all-reduced and a
      share is taken; slots become variables of a share's size (`dist.shares`); `dist.all_gather_variables` follows the updates of a group, or
      stands before the first node that reads one of its variables. What cannot be split stays whole, with a remark.
    - *Owners* (servers in workers' processes, dist-colocate-servers): gradients that only their update uses go whole to the owner, by a
      `dist.reduce_scatter` with `owners`, between tasks in groups of at most 4 MiB (`bucket-mb`, if that is more) or one variable's, from the last variable on; others are all-reduced. The update is the owner's alone
      (`dist.place`), who alone has the slots, and `dist.all_gather_variables` with `owners` gives the others the new value. Rows of a sparse gradient
      are joined everywhere, and every worker updates its own copy.
    - *Gradient accumulation*: `dist.accumulate` before any of these.
    - *Servers*: `dist.push` behind a raw gradient, `dist.take` behind the work that waits for nothing. Nodes from there to the updates are marked with
      `dist.place`: the server where all updates that they lead to are of its variables, the chief where these are of several servers. Where one
      is of a variable that every worker has, the gradient is reduced by a collective instead. What a server cannot compute (a learning rate that is
      fed, what the chief clipped) the chief pushes to it; what it can, from constants and variables of its own, it computes. Reads by workers become
      `dist.pull`, choices of rows `dist.pull_rows`. A step ends with `dist.tokens`, for which the training operation waits. Without `sync` each replica
      pushes what the update itself uses, and nothing waits; statistics are then each worker's own.
    - *Shards of rows on several servers*: each replica chooses the rows of each shard before it pushes them, and what stood before the
      choice (the optimizer's deduplication) is done for each shard where its update is.

    With `variable_averages_decay` every variable has a moving average, `NAME/ExponentialMovingAverage`, behind its updates.

    With one replica that has all variables and updates at each batch nothing is to be done.

    Before:
    ```mlir
    %g = dfg.mat_mul %x, %e {transpose_a = true} : (tensor<?x64xf32>, tensor<?x10xf32>) -> tensor<64x10xf32>
    dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<64x10xf32>>, tensor<f32>, tensor<64x10xf32>) -> ()
    ```
    After:
    ```mlir
    %g = dfg.mat_mul %x, %e {transpose_a = true} : (tensor<?x64xf32>, tensor<?x10xf32>) -> tensor<64x10xf32>
    %r = dist.all_reduce mean bucket 0 group 0 (%g) variables ["w"] : tensor<64x10xf32>
    dfg.apply_gradient_descent %w, %lr, %r : (!dfg.ref<tensor<64x10xf32>>, tensor<f32>, tensor<64x10xf32>) -> ()
    ```
  }];
  let options = [Option<"remarks", "remarks", "bool", "false", "A remark at every value that is reduced, with how the batch flows there">,
                 Option<"bucketMb", "bucket-mb", "int64_t", "0", "MiB that gradients of a group on their way have together; 0: any">,
                 Option<"eachApart", "each-apart", "bool", "false", "Gradients travel between all replicas, not between tasks alone">];
  let dependentDialects = ["::distc::dist::DISTDialect"];
}

def DistPruneOptimizerOps : Pass<"dist-prune-optimizer-ops", "mlir::ModuleOp"> {
  let summary = "Takes out the updates that another task does, and what only fed them";
  let description = [{
    Of the program that `dist-insert-synchronizers` leaves, a worker runs neither what a server nor what the chief runs alone
    (`dist.place`). What depends on such a node goes with it, and so do nodes whose values nothing else used; what an endpoint, the saver or
    a control edge names stays. Control edges from what is gone are dropped: the step's end waits for its pushes and tokens.

    With `sessions` servers run nothing by themselves, as in TensorFlow: the chief keeps the servers' nodes, with their `dist.place`, and
    every worker those updates that wait for no other worker.

    Before, with `role=worker`:
    ```mlir
    dist.push mean "synchronization/w" to <"ps" 0> of 2 (%g) variable "w" : tensor<4xf32>
    %t = dist.take mean "synchronization/w" from <"ps" 0> of 2 variable "w" {dist.place = #dist.place<"ps" 0>} : tensor<4xf32>
    dfg.apply_gradient_descent %w, %lr, %t {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
    ```
    After:
    ```mlir
    dist.push mean "synchronization/w" to <"ps" 0> of 2 (%g) variable "w" : tensor<4xf32>
    ```
  }];
  let options = [
    Option<"role", "role", "std::string", "\"worker\"", "chief or worker">,
    Option<"sessions", "sessions", "bool", "false", "Servers run nothing by themselves: sessions of workers run their nodes">,
  ];
}

def DistSplitRoles : Pass<"dist-split-roles", "mlir::ModuleOp"> {
  let summary = "Makes a program for each role: chief, worker, server";
  let description = [{
    The graph becomes one of the chief and one of all other workers (`dist.role`), each with what its endpoints need, and one of each server
    with its takes and updates; a server's `train_op` and `init_op` are groups of these under the endpoints' names. Workers are alike, so that
    there is one program of them, whatever their number. Without servers nothing is to be done: the program stands for all tasks.

    With `role` (and `index` of a server) only that program stays, with the variables that it names.

    Before:
    ```mlir
    dfg.graph attributes {train_op = "train"} {
      dist.push mean "synchronization/w" to <"ps" 0> of 2 (%g) variable "w" : tensor<4xf32>
      %t = dist.take mean "synchronization/w" from <"ps" 0> of 2 variable "w" {dist.place = #dist.place<"ps" 0>} : tensor<4xf32>
      dfg.apply_gradient_descent %w, %lr, %t {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
      ...
    }
    ```
    After:
    ```mlir
    dfg.graph attributes {dist.role = "chief", train_op = "train"} { dist.push ... }
    dfg.graph attributes {dist.role = "worker", train_op = "train"} { dist.push ... }
    dfg.graph attributes {dist.role = "server", dist.place = #dist.place<"ps" 0>, train_op = "train"} {
      %t = dist.take mean "synchronization/w" from <"ps" 0> of 2 variable "w" : tensor<4xf32>
      dfg.apply_gradient_descent %w, %lr, %t : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
      ...
    }
    ```
  }];
  let options = [
    Option<"role", "role", "std::string", "\"\"", "Keep the program of this role alone: chief, worker or server">,
    Option<"index", "index", "int64_t", "0", "Which server">,
  ];
}

def DistVerifyCollectives : Pass<"dist-verify-collectives", "mlir::ModuleOp"> {
  let summary = "Checks that no task waits for what never comes";
  let description = [{
    Of the program of all tasks or of the roles' programs together: chief and workers issue the same collectives in the same order, by
    ascending bucket; every accumulator that is taken from is pushed to, with the same type, reduction and number of gradients, and the other
    way round; tokens are given to all replicas; what one task computes no other uses unless it is sent; whoever reads or updates a variable
    holds it; no node that an endpoint needs stands before one that its control edges name. Changes nothing; an error names the operation and its counterpart.

    `dist.take mean "g" from <"ps" 0> of 2 variable "w" : tensor<4xf32>` alone gives: waits for accumulator "g", to which nothing is pushed.
  }];
}

def DistUnroll : Pass<"dist-unroll", "mlir::ModuleOp"> {
  let summary = "Writes all replicas into one graph (the unrolled form)";
  let description = [{
    Every node whose value is a replica's own is copied once a replica and marked with `dist.replica`; variables, what all replicas
    compute alike, and updates stay single, so the global step counts once. A `dist.all_reduce` becomes a sum over the replicas' values, and
    its N-th part for a mean. Runs after `dist-insert-synchronizers`; `dist-rename-scopes` gives the copies their names.
    Numbers drawn for the batch's rows are drawn for all of them at once, and split; sizes and values of the whole batch
    (`dist.whole_size`, `dist.rescale`) are products.

    With `keep-synchronizers` the operations of `dist` stay, one a replica, for `dist-legalize-for-tensorflow`; then `replicas` may be those of
    one task of several.
    The rows of a `dist.all_gather_slices` are put behind each other. Other ways of synchronizing stand for more than arithmetic on the replicas'
    values and are an error without `keep-synchronizers`.

    Before:
    ```mlir
    %g = dfg.sum %x, %axis : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    %r = dist.all_reduce sum bucket 0 group 0 (%g) variables ["w"] : tensor<4xf32>
    ```
    After, of two replicas:
    ```mlir
    %g0 = dfg.sum %x0, %axis {dist.replica = 0} : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    %g1 = dfg.sum %x1, %axis {dist.replica = 1} : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    %r = dfg.add_n %g0, %g1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let options = [
    Option<"replicas", "replicas", "int64_t", "0", "How many replicas; 0: all of the topology">,
    Option<"keepSynchronizers", "keep-synchronizers", "bool", "false", "Each replica issues its synchronizing operations itself">,
  ];
}

def DistRenameScopes : Pass<"dist-rename-scopes", "mlir::ModuleOp"> {
  let summary = "Gives every replica's nodes the scope replica_K/";
  let description = [{
    In one walk: names, and what control edges and colocations (`_class`) refer to. Within a replica a reference means the same replica's
    node; a shared node that named a copied one names every replica's. Taking the scope away gives the original name again. The
    bodies of functions are shared by all replicas and keep their names.

    Before: `dfg.identity %x {dist.replica = 1, control = ["y"]} loc("a")`; after: `dfg.identity %x {control = ["replica_1/y"]} loc("replica_1/a")`
    where `y` is copied too.
  }];
}

def DistMakeSaver : Pass<"dist-make-saver", "mlir::ModuleOp"> {
  let summary = "Gives a graph whose saver is of functions, or that has none, one of nodes"
                " (and an init op, where there is none)";
  let description = [{
    For graphs that TensorFlow will train, before calls are inlined: what a session saves with are nodes. Variables are saved
    under their keys in the graph's `objects`, and with these, so that what is saved is a checkpoint of objects as well; without,
    under their names, the parts of a table that the graph itself splits as slices of it. Reference variables are left to the graph's own saver.

    Before: `saver = {filename = "saver_filename:0", restore = "Call_2", save = "Call_1:0"}` and the two calls; after: `SaveV2` and
    `RestoreV2` of all variables, and `saver = {filename = "save/filename:0", restore = "save/restore_all", save = "save/control_dependency:0"}`.
  }];
  let dependentDialects = ["::distc::dfg::DFGDialect"];
}

def DistCheckShares : Pass<"dist-check-shares", "mlir::ModuleOp"> {
  let summary = "The step's shapes fit where a replica is fed its share of the batch";
  let description = [{
    For graphs that TensorFlow will train with several replicas. A graph can have the whole batch's size as a number, which no rule of the batch's flow sees behind
    control flow that stays as it is: TensorFlow would say so in each step. What is open in a placeholder that is not shared out is not known, and then
    neither are the step's shapes.
    ```mlir
    %x = dfg.placeholder {dist.feed = "sharded", ...} : () -> tensor<?xf32>
    %y = dfg.sub %x, %of_eight : (tensor<?xf32>, tensor<8xf32>) -> tensor<8xf32>    // an error: batch=8, two replicas
    ```
  }];
  let options = [Option<"batch", "batch", "int64_t", "0", "The global batch; 0: not known, and nothing is checked">];
}

def DistLegalizeForTensorFlow : Pass<"dist-legalize-for-tensorflow", "mlir::ModuleOp"> {
  let summary = "Makes the graph of one worker of stock TensorFlow operations";
  let description = [{
    The operations of `dist` become nodes that TensorFlow runs: sums over local replicas are `AddN`, over tasks `CollectiveReduceV2` of a
    whole bucket, sparse gradients `CollectiveGatherV2`. All workers issue their collectives in the order of the block, by control edges.
    Placeholders have their names and take the worker's rows, split among its replicas; the loss has its name and is the mean over them.
    Every node gets its device: the worker's, or that of the server that holds the variable it works on.

    A task with several replicas is unrolled before: `dist-unroll{keep-synchronizers}`, `dist-rename-scopes`. docs/export.md has what every
    other operation becomes, and what there is no form for.

    Before:
    ```mlir
    %r = dist.all_reduce mean bucket 0 group 0 (%g) variables ["w"] : tensor<4xf32>
    ```
    After, for worker 1 of 2, devices and constants left out:
    ```mlir
    %flat = dfg.reshape %g, %shape : (tensor<4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %sum = dfg.opaque "CollectiveReduceV2"(%flat, %group_size, %group_key, %instance_key) {tf = {T = f32, merge_op = "Add", final_op = "Id"}}
    %reduced = dfg.reshape %sum, %shape : (tensor<4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %r = dfg.mul %reduced, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    ```
  }];
  let options = [Option<"worker", "worker", "int64_t", "0", "Which worker's graph">,
                 Option<"batch", "batch", "int64_t", "0", "The global batch, for the program that feeds; 0: the graph fixes it">];
  let dependentDialects = ["::distc::dist::DISTDialect"];
}

def DistJoinFetches : Pass<"dist-join-fetches", "mlir::ModuleOp"> {
  let summary = "Says what the loss and each fetch give over all replicas";
  let description = [{
    By the batch's flow: what is sharded is joined along its axis, a partial mean is averaged, a partial sum added up, and what is the same in
    all replicas comes from the first. A fetch that the replicas' values do not make whole is an error; with `coupling=replica` in the strategy
    it is what a replica has.

    Before: `dfg.graph attributes {loss = "loss", fetches = ["y:0"]}`; after: `dist.joins = {"loss:0" = "mean", "y:0" = "concat:0"}` beside them.
  }];
}

def DistFormUpdates : Pass<"dist-form-updates", "mlir::ModuleOp"> {
  let summary = "Makes assignments that spell out an optimizer's rule one update of the variable and its slots";
  let description = [{
    A trained variable that is replaced by an expression of itself (JAX's steps, TensorFlow's optimizers in Python) is updated like by one of TensorFlow's
    operations: the expressions that the variable and its slots are replaced by are followed back, element by element, to the old values, to scalars
    and to one value through which everything else comes: the gradient. They become the rule of a `dist.update`, so that partitioners, owners and
    sharded updates divide the work, and it is one kernel, without values in between. A slot is a variable of the same type that is not trained, and whose
    new value depends on the variable's, or the other way round, element by element.

    What is no function of one gradient element by element (a trust ratio, factored moments) stays as it is: right, and done by every worker.

    Before:
    ```mlir
    %old = dfg.read_variable %w
    %scaled = dfg.mul %gradient, %rate
    %new = dfg.sub %old, %scaled
    dfg.assign %w, %new
    ```
    After:
    ```mlir
    dist.update %w, %gradient, %rate {has_gradient} : ... {
    ^bb0(%o: f32, %g: f32, %r: f32):
      %s = arith.mulf %g, %r : f32
      %n = arith.subf %o, %s : f32
      dist.yield %n : f32
    }
    ```
  }];
  let dependentDialects = ["::distc::dist::DISTDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def DistFormRowUpdates : Pass<"dist-form-row-updates", "mlir::ModuleOp"> {
  let summary = "Gradients that are rows added up into zeros are rows again";
  let description = [{
    In functional code the gradient of an embedding is a table of zeros to which rows are added. Where only a `dist.update` reads it, and the rule leaves the
    variable and its slots as they are where the gradient is zero (SGD, Adagrad; not a rule with momentum, decay or averages), the update takes the
    rows and their numbers, each once. Strategies then treat the gradient as TensorFlow's sparse ones, and rows that the batch does not name are not
    touched. This counts what the gradient is multiplied by as finite. Where the batch names more rows than the table has, the table stays.

    Before:
    ```mlir
    %gradient = dfg.unsorted_segment_sum %rows, %ids, %size
    dist.update %table, %gradient {has_gradient}
    ```
    After:
    ```mlir
    %distinct, %number = dfg.unique %ids
    %sums = dfg.unsorted_segment_sum %rows, %number, %count
    dist.update %table, %sums, %distinct {has_gradient, has_indices}
    ```
  }];
  let options = [Option<"batch", "batch", "int64_t", "0", "The global batch; 0: rows are taken whatever their number">];
  let dependentDialects = ["::distc::dfg::DFGDialect", "::distc::dist::DISTDialect"];
}

def DistFormTableUpdates : Pass<"dist-form-table-updates", "mlir::ModuleOp"> {
  let summary = "Rules of servers' tables that change all rows, and are spelled out with their slots, are updates of both";
  let description = [{
    TensorFlow spells Adam out for sparse gradients: the slots decay as a whole, the gradient's rows are added to them, and the table changes by an expression of what the
    slots are then. Where a server holds the table, that expression becomes the rule of a `dist.update` of the table and its slots, which leaves the slots as they are,
    and a decay one of the slot. So slots are split as the table is, and whoever owns a shard of it needs nothing of the others'.

    Where rows are added to the table that are computed of rows of its slots (tf_keras' RMSprop, Adamax, Nadam), the update has these slots too, and their rows are read of the variables.

    The expression may read slots of the table's type that the step writes by assignments and by rows alone, scalars and constants; anything else leaves all as it is.

    Before:
    ```mlir
    dfg.assign %m, %decayed
    dfg.scatter_add %m, %ids, %rows
    %now = dfg.read_variable %m
    %step = dfg.mul %now, %rate
    dist.update %table, %step {has_gradient} : ... {
    ^bb0(%o: f32, %g: f32):
      %n = arith.subf %o, %g : f32
      dist.yield %n : f32
    }
    ```
    After:
    ```mlir
    dist.update %m, %beta { ... }
    dfg.scatter_add %m, %ids, %rows
    dist.update %table, %m, %rate : ... {
    ^bb0(%o: f32, %now: f32, %r: f32):
      %step = arith.mulf %now, %r : f32
      %n = arith.subf %o, %step : f32
      dist.yield %n, %now : f32, f32
    }
    ```
  }];
  let dependentDialects = ["::distc::dist::DISTDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def DistKeepInStep : Pass<"dist-keep-in-step", "mlir::ModuleOp"> {
  let summary = "Has replicas take every step together, where the strategy only lets them be apart";
  let description = [{
    Replicas that are in step are within any bound of staleness, so it goes from the strategy, with a warning; other servers that serve on their own are an error. For
    targets whose replicas are always in step (devices).
  }];
}

def DistServeUpdates : Pass<"dist-serve-updates", "mlir::ModuleOp"> {
  let summary = "Parts what replicas compute from what servers in their process update, each at its own pace";
  let description = [{
    Of a strategy whose servers serve on their own, in one process. What sees reduced gradients, or updates a variable in the training step, and what is
    behind that, is the servers' (`dist.place`), and runs once an update; the rest is each replica's. A gradient goes from one to
    the other by `dist.push` and `dist.take` instead of an all-reduce, and a variable that the servers update by `dist.pull`; rows that are taken of it by
    numbers which are known before anything is pulled, by `dist.pull_rows`. What servers need and is the same everywhere (constants, learning rates, feeds that go whole to every replica) they compute themselves, from copies of its nodes.
    A replica's step ends with `dist.tokens`, unless updates are asynchronous.

    Before:
    ```mlir
    %w = dfg.read_variable %h : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32>
    %r = dist.all_reduce mean bucket 0 group 0 (%g) variables ["w"] : tensor<4xf32>
    dfg.apply_gradient_descent %h, %lr, %r : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("train")
    ```
    After, with `replicas_to_aggregate: 2` of 3 replicas:
    ```mlir
    %w = dist.pull %h from <"worker" 0> : !dfg.ref<tensor<4xf32>> -> tensor<4xf32>
    dist.push mean "gradients/0/w" to <"worker" 0> of 2 (%g) variable "w" : tensor<4xf32>
    %r = dist.take mean "gradients/0/w" from <"worker" 0> of 2 variable "w" {dist.place = #dist.place<"worker" 0>} : tensor<4xf32>
    dfg.apply_gradient_descent %h, %lr_copy, %r {dist.place = #dist.place<"worker" 0>} : (...) -> () loc("train")
    dist.tokens at <"worker" 0> of 3
    ```
  }];
  let dependentDialects = ["::distc::dist::DISTDialect"];
}

def DistSpellOutExchange : Pass<"dist-spell-out-exchange", "mlir::ModuleOp"> {
  let summary = "Makes compressors and aggregators of all-reduces nodes around plain collectives";
  let description = [{
    For devices, whose runtime only adds up and gathers. Of each entry's `dist.all_reduce` with a compressor or an aggregator: what a replica sends is
    computed before a `dist.all_gather` (halves, the largest elements, all gradients of an aggregator) or a plain `dist.all_reduce` (the factors of
    power_sgd), and the gradient from what comes back. That stands where the gradient is read first, so that the program computes meanwhile. Errors that are fed back, and factors,
    are variables of a replica's own that begin as zeros (`kind = "local"`). Gradients that are halves themselves are joined and added up in float32 too, and
    shares of them (`dist.reduce_scatter`) taken from the sum. Buckets are numbered anew.

    Before:
    ```mlir
    %r = dist.all_reduce mean bucket 0 group 0 (%g) variables ["w"] {compression = #dist.compression<fp16>} : tensor<4xf32>
    ```
    After, of two replicas, without what keeps large numbers finite:
    ```mlir
    %half = dfg.cast %g : (tensor<4xf32>) -> tensor<4xf16>
    %row = dfg.reshape %half, %shape : (tensor<4xf16>, tensor<2xi32>) -> tensor<1x4xf16>
    %all = dist.all_gather bucket 0 (%row) name "w" : (tensor<1x4xf16>) -> tensor<2x4xf16>
    %rows:2 = dfg.split %axis, %all : (tensor<i32>, tensor<2x4xf16>) -> (tensor<1x4xf16>, tensor<1x4xf16>)
    ```
    and their sum in float32, divided by 2 and rounded to a half once more.
  }];
  let dependentDialects = ["::distc::dfg::DFGDialect", "::distc::dist::DISTDialect"];
}

def TestBatchFlow : Pass<"test-batch-flow", "mlir::ModuleOp"> {
  let summary = "Annotates every node with how the batch flows through it (`flow`), for tests";
}
#endif // DISTRIBUTE_PASSES
