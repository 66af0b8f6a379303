//===- Passes.td - What code knows no operation or type for ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef REWRITE_PASSES
#define REWRITE_PASSES

include "mlir/Pass/PassBase.td"

def DivideConvolutions : Pass<"dfg-divide-convolutions", "::mlir::ModuleOp"> {
  let summary = "Convolutions in groups that XLA was to compile are depthwise ones, or one a group";
  let description = [{
    Of an exported graph. On processors TensorFlow has no gradients of convolutions whose channels are in groups, except by XLA: so Keras calls a
    function that XLA compiles. Put where it was called, it is no such function any longer, and sessions of several tasks compile none.
    ```mlir
    %y = dfg.conv_2d %x, %f {tf = {_XlaMustCompile = true} ...} : (tensor<?x8x8x4xf32>, tensor<3x3x1x4xf32>) -> tensor<?x8x8x4xf32>
    // becomes
    %t = dfg.reshape %f, %sizes : (tensor<3x3x1x4xf32>, tensor<4xi32>) -> tensor<3x3x4x1xf32>
    %y = dfg.depthwise_conv_2d_native %x, %t ... : (tensor<?x8x8x4xf32>, tensor<3x3x4x1xf32>) -> tensor<?x8x8x4xf32>
    ```
    Groups of several channels are convolutions of slices, which are concatenated. Images whose channels are not their last axis, or not known, stay.
  }];
  let dependentDialects = ["::distc::dfg::DFGDialect"];
}

def FoldDistinct : Pass<"dfg-fold-distinct", "::mlir::ModuleOp"> {
  let summary = "Rows of distinct values, taken by each value's place among them, are the rows of the values";
  let description = [{
    Who looks up each row of a table once (`u, k = tf.unique(ids)`, `tf.gather(tf.gather(table, u), k)`) has gradients that are summed at the places of
    distinct values, and an optimizer finds those distinct once more. Both are what they are without `tf.unique`, whose number of values is known only when
    the program runs: an optimizer looks for the distinct ones of the ids themselves.
    ```mlir
    %u, %k = dfg.unique %ids : (tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
    %once = dfg.resource_gather %table, %u : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32>
    %rows = dfg.gather_v2 %once, %k, %zero : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32>
    // becomes
    %rows = dfg.resource_gather %table, %ids : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32>
    ```
    Nodes stay, without uses: control edges may name them.

    How many distinct values there are (`tf.size(u)`), where it is a number that goes into a float or a variable and no size of a tensor, is one more than the
    largest place: that number data decide, of which as a size only a bound is known.
  }];
}

def ReadTables : Pass<"dfg-read-tables", "::mlir::ModuleOp"> {
  let summary = "A hash table of integers that are known is looked up by halves of its sorted keys";
  let description = [{
    What vocabularies of integers become (`tf.lookup.StaticHashTable`, Keras' IntegerLookup): a table that one operation fills with constant keys, and others
    look up. In its place are the sorted keys, of which each element's place is found in as many steps as their number has bits, and the values at these places.
    ```mlir
    %table = dfg.opaque "HashTableV2"() : () -> tensor<!dfg.resource>
    dfg.opaque "LookupTableImportV2"(%table, %keys, %values) : (tensor<!dfg.resource>, tensor<3xi64>, tensor<3xf32>) -> ()
    %found = dfg.opaque "LookupTableFindV2"(%table, %x, %otherwise) : (tensor<!dfg.resource>, tensor<?xi64>, tensor<f32>) -> tensor<?xf32>
    // becomes
    %place = dfg.select_v2 %is_less, %behind, %before : (tensor<?xi1>, tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32> // for each bit
    %order = dfg.gather_v2 %order_of_keys, %place, %zero : (tensor<4xi32>, tensor<?xi32>, tensor<i32>) -> tensor<?xi32>
    %value = dfg.gather_v2 %values, %order, %zero : (tensor<3xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?xf32>
    %found = dfg.select_v2 %is_there, %value, %otherwise : (tensor<?xi1>, tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
    ```
    Tables of strings, and those that change, stay.
  }];
}

def HashIntegers : Pass<"dfg-hash-integers", "::mlir::ModuleOp"> {
  let summary = "Buckets of integers by the hash of their decimal digits, or of several of them, are arithmetic";
  let description = [{
    Keras' Hashing and the feature column `categorical_column_with_hash_bucket` write integers as strings, whose hash (FarmHash's Fingerprint64) says the bucket. The digits,
    the bytes that the hash reads and the hash are nodes of 64-bit integers here, element by element like any others.
    ```mlir
    %text = dfg.opaque "AsString"(%ids) : (tensor<?xi64>) -> tensor<?x!dfg.string>
    %bucket = dfg.opaque "StringToHashBucketFast"(%text) {tf = {num_buckets = 100}} : (tensor<?x!dfg.string>) -> tensor<?xi64>
    // becomes
    %digit = dfg.truncate_mod %ids, %ten : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64> // and so on
    ```
    So is the keyed hash (SipHash-2-4) of a Hashing with a salt, and HashedCrossing's of columns of integers. Hashes of other strings stay.
  }];
}

def FoldRows : Pass<"dfg-fold-rows", "::mlir::ModuleOp"> {
  let summary = "All rows of a tensor, in their order, are the tensor; vectors that one mask chooses are stacked";
  let description = [{
    So `tf.vectorized_map` takes a batch's examples, by numbers that are other ones in a replica's share of them.
    ```mlir
    %numbers = dfg.range %zero, %rows, %one : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<?xi32>
    %all = dfg.gather_v2 %x, %numbers, %zero : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32>
    // is %x, where %rows is its first size
    ```
    Keras makes coordinates of two vectors (`ctc_batch_cost`): joined and made a matrix of two rows, they are `dfg.pack`, of which it is known that both are as long.
    ```mlir
    %joined = dfg.concat_v2 %a, %b, %zero : (tensor<?xi32>, tensor<?xi32>, tensor<i32>) -> tensor<?xi32>
    %rows = dfg.reshape %joined, %two_by_any : (tensor<?xi32>, tensor<2xi32>) -> tensor<2x?xi32>
    // becomes, where %a and %b are gathered where the same mask is
    %rows = dfg.pack %a, %b : (tensor<?xi32>, tensor<?xi32>) -> tensor<2x?xi32>
    ```
    The node stays, without uses: control edges may name it.
  }];
}

def FoldWhere : Pass<"dfg-fold-where", "::mlir::ModuleOp"> {
  let summary = "The coordinates of what a constant chooses are a constant";
  let description = [{
    A mask that is known (the triangle of DLRM's interactions) chooses a number of elements that is known, and shapes that follow from it are inferred.
    ```mlir
    %mask = dfg.const dense<[false, true]> : tensor<2xi1>
    %at = dfg.opaque "Where"(%mask) : (tensor<2xi1>) -> tensor<?x1xi64>
    // becomes
    %at = dfg.const dense<1> : tensor<1x1xi64>
    ```
  }];
  let dependentDialects = ["::distc::dfg::DFGDialect"];
}

def GatherSlices : Pass<"dfg-gather-slices", "::mlir::ModuleOp"> {
  let summary = "Slices of a known size at places that data decide are gathers";
  let description = [{
    So `tf.image.stateless_random_crop` takes parts of images, and `x[:, i : i + 12]` of sequences: what a strided slice takes is how much its end is more than its
    begin, where that is a constant: of sums and products, as in `x[i * 12 : (i + 1) * 12]`. Along axes of which all is taken nothing is gathered, whatever the place is said to be: there is one alone. A slice's gradient
    is gathered, too, and lies between zeros. A place outside of the axis ends the run, as a row that is not there.
    ```mlir
    %y = dfg.slice %x, %begin, %size : (tensor<?x8xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x4xf32>
    // becomes, where %size is all examples and 4
    %positions = dfg.add_v2 %place, %numbers : (tensor<1xi32>, tensor<4xi32>) -> tensor<4xi32>
    %y = dfg.gather_v2 %x, %positions, %one : (tensor<?x8xf32>, tensor<4xi32>, tensor<i32>) -> tensor<?x4xf32>
    ```
  }];
  let dependentDialects = ["::distc::dfg::DFGDialect"];
}

def NumberRows : Pass<"dfg-number-rows", "::mlir::ModuleOp"> {
  let summary = "Rows of a variable that coordinates of one number name are rows by their numbers";
  let description = [{
    As other sparse updates have them, so that replicas' rows are joined like theirs.
    ```mlir
    dfg.scatter_nd_update %v, %at, %x : (!dfg.ref<tensor<9x4xf32>>, tensor<?x1xi32>, tensor<?x4xf32>) -> ()
    // becomes
    %rows = dfg.reshape %at, %all : (tensor<?x1xi32>, tensor<1xi32>) -> tensor<?xi32>
    dfg.scatter_update %v, %rows, %x : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> ()
    ```
  }];
  let dependentDialects = ["::distc::dfg::DFGDialect"];
}

def SpellOutOperations : Pass<"dfg-spell-out-operations", "::mlir::ModuleOp"> {
  let summary = "Assignments of a variable's slice, counters with a limit, generators of random numbers and empty tensors, in other operations";
  let description = [{
    `StridedSliceAssign` assigns what the slice has, and elsewhere the old value; `CountUpTo` asserts that the limit is not reached, and adds
    1; `RngReadAndSkip` reads a generator's state and assigns what it is behind the numbers that are drawn; `Empty` is filled with zeros. Of a variable that is passed to a function they stay, but for
    `RngReadAndSkip`.
    ```mlir
    dfg.opaque "ResourceStridedSliceAssign"(%v, %begin, %end, %strides, %value)
    // becomes
    %padded = dfg.strided_slice_grad %sizes, %begin, %end, %strides, %value
    %new = dfg.select_v2 %inside, %padded, %old
    dfg.assign %v, %new
    ```
  }];
  let options = [Option<"keepsOrder", "keeps-order", "bool", /*default=*/"false",
                        "order is by control edges, not by the place in the block (exported graphs): counters stay, and slices of variables that "
                        "something else updates but by plain assignments, since another update might run between the read and the assignment">];
  let dependentDialects = ["::distc::dfg::DFGDialect"];
}

def SplitComplex : Pass<"dfg-split-complex", "::mlir::ModuleOp"> {
  let summary = "Complex tensors are two real ones, and Fourier transforms products with matrices";
  let description = [{
    For executables, behind `dfg-expand-control-flow`: losses on spectrograms, filters in the frequency domain, rotations. Of a real tensor no imaginary part is made. A
    transform's lengths must be known, and its matrix may have 2^24 elements.
    ```mlir
    %z = dfg.opaque "RFFT"(%x, %length) : (tensor<?x8xf32>, tensor<1xi32>) -> tensor<?x5xcomplex<f32>>
    %y = dfg.opaque "Real"(%z) : (tensor<?x5xcomplex<f32>>) -> tensor<?x5xf32>
    // becomes
    %y = dfg.mat_mul %x, %cosines : (tensor<?x8xf32>, tensor<8x5xf32>) -> tensor<?x5xf32>
    ```
    Any other operation on complex numbers is an error at its node.
  }];
  let dependentDialects = ["::distc::dfg::DFGDialect"];
}

def WidenUnsigned : Pass<"dfg-widen-unsigned", "::mlir::ModuleOp"> {
  let summary = "Unsigned integers of 8, 16 and 32 bits are computed as wider ones with a sign";
  let description = [{
    For executables, behind `dfg-expand-control-flow`. What may go beyond the type is cut to its low bits. A feed of bytes is one of bytes still. Values that nodes
    make or take of which it is not known how (variables among them) stay, and are refused where they are needed.
    ```mlir
    %x = dfg.placeholder : () -> tensor<?x8xui8> loc("x")
    %y = dfg.cast %x : (tensor<?x8xui8>) -> tensor<?x8xf32>
    // becomes
    %x = dfg.placeholder {dfg.unsigned} : () -> tensor<?x8xi8> loc("x")
    %w = dfg.cast %x : (tensor<?x8xi8>) -> tensor<?x8xi32>
    %u = dfg.bitwise_and %w, %c255 : (tensor<?x8xi32>, tensor<i32>) -> tensor<?x8xi32>
    %y = dfg.cast %u : (tensor<?x8xi32>) -> tensor<?x8xf32>
    ```
  }];
  let dependentDialects = ["::distc::dfg::DFGDialect"];
}

#endif // REWRITE_PASSES
