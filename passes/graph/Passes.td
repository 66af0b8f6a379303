//===- Passes.td - Passes over the graph, before and after distribution ---------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_GRAPH_PASSES
#define DISTC_PASSES_GRAPH_PASSES

include "mlir/Pass/PassBase.td"

def ReadReferences : Pass<"dfg-read-references", "::mlir::ModuleOp"> {
  let summary = "Reads a reference variable where its value is used";
  let description = [{
    What TensorFlow reads of a reference variable is its memory: a node that runs behind an update (by control edges or its operands) sees the
    new value, whenever the read was made. Such a node is given a read of its own behind the update. Where the update is in a loop or a condition of version 1,
    it waits for what its user waits for. Loops and
    branches of version 1 (Enter, Switch) that update the variable take the variable itself instead of its value: what they compute of it reads it
    then, in each iteration. A graph that is exported for one replica keeps its reads, which TensorFlow runs as it did.
  }];
  let dependentDialects = ["::distc::dfg::DFGDialect"];
}

def StripExportInfo : Pass<"dfg-strip-export-info", "::mlir::ModuleOp"> {
  let summary = "Takes away what only an export to TensorFlow reads";
  let description = [{
    For people who read the IR (`distc compile --emit=dfg --strip-export-info`): attributes of nodes that are TensorFlow's own (`_output_shapes`,
    `_class`, ...), names and containers of resources, and serialized collections go. Executables are made of the rest as before; an export
    is refused.
    ```mlir
    %y = dfg.mul %w, %x {tf = {_output_shapes = [#dfg.shape<[?]>]}} : ...    // becomes  %y = dfg.mul %w, %x : ...
    ```
  }];
}

def InlineCalls : Pass<"dfg-inline-calls", "::mlir::ModuleOp"> {
  let summary = "Puts the bodies of library functions where they are called";
  let description = [{
    Nodes of the body are named `CALL/NODE`. What must run after the call must run after the nodes that the function says must
    run (`control`); resources that are passed become the caller's handles. A function that calls itself is an error.
    Convolutions of a function that XLA compiles say so from then on, for `dfg-divide-convolutions`.
    A call runs when all that it takes is there: what the body does with a variable comes behind the updates of it that the call waits for, and
    what it writes behind the reads.
    ```mlir
    dfg.func @twice(%x: tensor<f32>) -> tensor<f32> { %y = dfg.add_v2 %x, %x loc("sum") ... }
    %r = dfg.call @twice(%a) loc("f")        // becomes  %r = dfg.add_v2 %a, %a loc("f/sum")
    ```
  }];
  let dependentDialects = ["::distc::dfg::DFGDialect"];
}

def RemarkRaces : Pass<"dfg-remark-races", "::mlir::ModuleOp"> {
  let summary = "A remark where no edge puts two accesses of a variable in order";
  let description = [{
    Of the nodes that a step runs, a write of a variable and another access of it between which there is no path either way run in any order in TensorFlow:
    a second read beside an update, a layer's moving mean that two calls update. The order here is that of the block (reads of the
    old value first, then the file's), the same in every run. Two that add to a variable may come in any order.
  }];
}

def OrderInitialization : Pass<"dfg-order-initialization", "::mlir::ModuleOp"> {
  let summary = "What initializes a variable comes before what is initialized from it";
  let description = [{
    An average that starts as a copy of what it is of: where no edge of the init op says whether the variable is read before it is assigned, TensorFlow runs
    them as they come, and the read fails if it is the first. So the only order that gives numbers is taken, and an edge by control says it.
    ```mlir
    %initial = dfg.read_variable %w                              // becomes  dfg.read_variable %w {control = ["w/Assign"]}, behind that
    dfg.assign %w, %zeros loc("w/Assign")
    dfg.assign %average, %initial
    ```
    Reads that a step needs as well stay where they are.
  }];
}

def FeedInputs : Pass<"dfg-feed-inputs", "::mlir::ModuleOp"> {
  let summary = "What the graph reads of files is fed: components of an iterator, features of parsed examples";
  let description = [{
    For executables, which read files themselves. Outputs of IteratorGetNext become placeholders of their names (`NODE`, `NODE:1`), and features of fixed
    length that ParseExample takes of a batch of examples become placeholders named as in the examples; a feature that is a string, decoded by DecodeRaw
    and reshaped to [-1, ...], is its numbers. What is sparse, ragged or padded stays, and is refused where an endpoint needs it.
    ```mlir
    %0:2 = dfg.opaque "ParseExampleV2"(...)     // keys "image", "label"
    // becomes
    %0 = dfg.placeholder : () -> tensor<?x784xf32> loc("image")
    %1 = dfg.placeholder : () -> tensor<?xi64> loc("label")
    ```
  }];
  let dependentDialects = ["::distc::dfg::DFGDialect"];
}

def RaiseLoops : Pass<"dfg-raise-loops", "::mlir::ModuleOp"> {
  let summary = "Loops of version 1 become While nodes with functions";
  let description = [{
    For executables, before `dfg-expand-control-flow`: frames of Enter, Merge, Switch, NextIteration, Exit and LoopCond are what a While node
    of the frame's name does, with functions of its condition and its body. Conditions of version 1 (Switch and Merge) stay.
    ```mlir
    %e = dfg.opaque "Enter"(%a) ...               // %w = dfg.opaque "While"(%a) {tf = {body = @.../body, cond = @.../cond}}
    %m:2 = dfg.opaque "Merge"(%e, %next) ...
    ```
  }];
  let dependentDialects = ["::distc::dfg::DFGDialect"];
}

def ExpandControlFlow : Pass<"dfg-expand-control-flow", "::mlir::ModuleOp"> {
  let summary = "Conditions, loops, lists and optionals that endpoints need become straight-line code";
  let description = [{
    For executables: an exported graph keeps its own form. Conditions whose predicate is known are their branch; of others both
    branches run, and results and what variables are assigned are selected. Loops are unrolled as often as they run, or can
    run at most; one without a bound is refused with its name, or runs `max-iterations` times at most, and the program ends where it would go on. TensorLists, TensorArrays, stacks and optionals are known element by element, and
    gone afterwards. A placeholder with a default, which nothing feeds, is its default. Nodes of a body are named `LOOP/ITERATION/NODE` or
    `CONDITION/NODE`. `feeds` fixes sizes that bound a loop; the batch stays open. A loop over its examples becomes operations on all of them; where iterations depend
    on each other, and `batch` says how many examples there are, each is written out, with the rows of the whole batch.
    ```mlir
    %i, %x = dfg.opaque "While"(%zero, %a) {tf = {body = ..., cond = ...}}     // 2 iterations: %0 = dfg.mul %a, %w  loc("while/0/mul")
                                                                             //               %1 = dfg.mul %0, %w  loc("while/1/mul")
    ```
  }];
  let dependentDialects = ["::distc::dfg::DFGDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let options = [
    ListOption<"feeds", "feeds", "std::string", "NAME=2x3: the shape of a placeholder">,
    Option<"keepsOrder", "keeps-order", "bool", "false", "control edges say what runs before what, and not the place in the block: for exports">,
    Option<"maxIterations", "max-iterations", "int64_t", "0", "how often a loop runs at most that nothing bounds, but that needs a bound; 0: it is refused">,
    Option<"batch", "batch", "int64_t", "0", "the size of the whole batch, for loops over its examples whose iterations depend on each other; 0: they are refused">
  ];
}

def WriteOutControlFlow : Pass<"dfg-write-out-control-flow", "::mlir::ModuleOp"> {
  let summary = "Conditions and loops of a graph that is exported for several replicas become straight-line code, where they can";
  let description = [{
    `dfg-raise-loops` and `dfg-expand-control-flow` for exports. The batch's flow, and the rewriting of variables that are split or on servers, need not
    look into functions and frames then. What only the init op needs stays. A graph whose control flow has no such form (no bound of a loop, effects under a condition) is left as it was, with a
    remark that says why.
  }];
  let dependentDialects = ["::distc::dfg::DFGDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let options = [ListOption<"feeds", "feeds", "std::string", "NAME=2x3: the shape of a placeholder">];
}

def InferShapes : Pass<"dfg-infer-shapes", "::mlir::ModuleOp"> {
  let summary = "Gives every tensor the shape that follows from its operands'";
  let description = [{
    Without `batch`, sizes that depend on it stay `?`; with it, a placeholder's unknown first size is that number and what
    follows from it is static. `feeds` fixes whole shapes.
    ```mlir
    %x = dfg.placeholder : () -> tensor<?x4xf32>         // batch=8: tensor<8x4xf32>
    %y = dfg.mat_mul %x, %w : ... -> tensor<*xf32>       //          tensor<8x2xf32>
    ```
  }];
  let dependentDialects = ["::distc::dfg::DFGDialect"];
  let options = [
    Option<"batch", "batch", "int64_t", "0", "a placeholder's unknown first size; 0: it stays unknown">,
    ListOption<"feeds", "feeds", "std::string", "NAME=2x3: the shape of a placeholder">
  ];
}

def Decompose : Pass<"dfg-decompose", "::mlir::ModuleOp"> {
  let summary = "Operations that are made of others become those";
  let description = [{
    Where code is generated: before the batch's flow, which then only meets what batch normalization, an einsum or a resized image is made of; and
    once more (`last`) when all sizes are numbers, for those that must know them. What then remains is an error that says why.
    ```mlir
    %y = dfg.matrix_band_part %x, %lower, %upper     // dfg.range, dfg.sub, dfg.less_equal, dfg.select_v2
    ```
    The node of the first result keeps the name; others are named NAME/OPERATION.
  }];
  let dependentDialects = ["::distc::dfg::DFGDialect"];
  let options = [Option<"last", "last", "bool", "false", "what cannot be decomposed is an error">];
}

def Fold : Pass<"dfg-fold", "::mlir::ModuleOp"> {
  let summary = "Shape arithmetic becomes constants; what no result or effect needs goes";
  let description = [{
    In functions only, since a graph is to leave as its author wrote it; `graph` asks for it there as well. Values whose elements
    the shapes tell become `dfg.const`, identities give way to their operands, and nodes without effects and uses are removed.
    ```mlir
    %s = dfg.shape %x : (tensor<8x4xf32>) -> tensor<2xi32>    // dfg.const dense<[8, 4]>
    ```
  }];
  let dependentDialects = ["::distc::dfg::DFGDialect"];
  let options = [Option<"graph", "graph", "bool", "false", "fold in dfg.graph as well">];
}

def CancelTransposes : Pass<"dfg-cancel-transposes", "::mlir::ModuleOp"> {
  let summary = "Element-wise chains have their axes in the order in which the fewest bytes are transposed";
  let description = [{
    In functions whose sizes are numbers. Transpositions of transpositions are one, or none. Then tensors of three axes and more that element-wise
    operations, reductions, paddings, slices and concatenations tie together take one order of axes, that which costs the fewest bytes of transpositions
    where they come from elsewhere and go to: between convolutions, whose images have their channels last, a graph of PyTorch has them first.
    What is broadcast along one axis is reshaped.
    ```mlir
    %1 = dfg.transpose %conv, %nchw : (tensor<8x4x4x16xf32>, tensor<4xi32>) -> tensor<8x16x4x4xf32>
    %2 = dfg.add_v2 %1, %bias : (tensor<8x16x4x4xf32>, tensor<16x1x1xf32>) -> tensor<8x16x4x4xf32>
    %3 = dfg.transpose %2, %nhwc : (tensor<8x16x4x4xf32>, tensor<4xi32>) -> tensor<8x4x4x16xf32>
    // becomes
    %b = dfg.reshape %bias, %sizes : (tensor<16x1x1xf32>, tensor<4xi32>) -> tensor<1x1x1x16xf32>
    %3 = dfg.add_v2 %conv, %b : (tensor<8x4x4x16xf32>, tensor<1x1x1x16xf32>) -> tensor<8x4x4x16xf32>
    ```
  }];
  let dependentDialects = ["::distc::dfg::DFGDialect"];
}

def CheckEndpoints : Pass<"dfg-check-endpoints", "::mlir::ModuleOp"> {
  let summary = "Refuses a graph whose endpoints are not there, or need a node without semantics";
  let description = [{
    The endpoints are the graph's attributes `train_op`, `init_op`, `loss` and `fetches`. The graph stays as it is: later passes
    would otherwise meet a node that they know nothing of, and complain of what follows from it. With `code=false` nodes without
    semantics may be needed: the graph is to leave as a graph again.
  }];
  let options = [Option<"code", "code", "bool", "true", "what endpoints need must have semantics">];
  let dependentDialects = ["::distc::dfg::DFGDialect"];
}

def ExtractEntries : Pass<"dfg-extract-entries", "::mlir::ModuleOp"> {
  let summary = "Takes out of the graph what its endpoints need, as functions";
  let description = [{
    `@init` runs the init op; `@step` the train op, and gives the loss and the fetches; `@eval` gives the loss and the fetches
    without training. Where gradients are accumulated over several batches (`dist.accumulate`), `@accumulate` is what a step does for all of them
    but the last: what leads to the gradients, and variables that change with each batch; not what follows from the update, nor what changes
    without seeing the batch (the global step). Each holds exactly the nodes that its endpoints need through data and `control` edges, in the order of
    the graph, and its fetched tensors' names in `dfg.fetches`; `dfg.joins` says what a fetch gives over all replicas
    (`concat`: their rows, `mean`, or `first`: replica 0's), and `dfg.entry` which entry it is. Placeholders stay inside;
    groups and control edges, which only said what must run, are gone. The graph is gone afterwards. Endpoints
    that no option names are the graph's attributes; a node that must run and has no code is an error.
    ```mlir
    dfg.graph attributes {train_op = "train", loss = "loss:0"} { ... }
    // becomes
    dfg.func @step() -> tensor<f32> attributes {dfg.fetches = ["loss:0"]} { ... dfg.return %loss : tensor<f32> }
    dfg.func @eval() -> tensor<f32> attributes {dfg.fetches = ["loss:0"]} { ... }
    ```
  }];
  let dependentDialects = ["::distc::dfg::DFGDialect"];
  let options = [
    Option<"trainOp", "train-op", "std::string", "\"\"", "name of the operation that trains">,
    Option<"loss", "loss", "std::string", "\"\"", "name of the loss, a tensor">,
    Option<"initOp", "init-op", "std::string", "\"\"", "name of the operation that initializes the variables">,
    ListOption<"fetches", "fetches", "std::string", "names of further tensors to give back">
  ];
}

#endif // DISTC_PASSES_GRAPH_PASSES
