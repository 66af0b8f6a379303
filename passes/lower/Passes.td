//===- Passes.td - From the distributed graph to the runtime's plan and objects ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PASSES
#define DISTC_PASSES_LOWER_PASSES

include "mlir/Pass/PassBase.td"

def DescribeProgram : Pass<"drt-describe-program", "::mlir::ModuleOp"> {
  let summary = "Writes what the program says of itself into a `drt.program`";
  let description = [{
    Tasks and replicas are those of `dist.topology`, which is gone afterwards. See `convert-drt-to-llvm` for the entries. A remark says so where the graph's own
    device names divide it among several accelerators: a replica is one device.
  }];
  let options = [
    Option<"graph", "graph", "std::string", "\"\"", "file of the graph, for messages">,
    Option<"strategy", "strategy", "std::string", "\"\"", "name of the strategy, for the log">,
    Option<"target", "target", "std::string", "\"cpu\"", "machine that code is generated for">,
    Option<"replicaBatch", "replica-batch", "int64_t", "0", "rows of a replica's share; 0: no feed is batched">,
    Option<"cores", "cores", "int64_t", "0", "cores that compute a replica's step; 0: one, and library calls as many as there are">,
    Option<"joint", "joint", "bool", "false", "the tasks, of one replica each, share their memory">,
  ];
  let dependentDialects = ["::distc::drt::DRTDialect"];
}

def MergeShares : Pass<"drt-merge-shares", "::mlir::ModuleOp"> {
  let summary = "Shares, and what servers own, are whole again where one task has all of them";
  let description = [{
    For plans with one task, others are left alone: its replicas share the memory of variables and slots, and each updates a range of its own anyway. So entries are as
    without sharded updates, and matmuls are joined as there.

    ```mlir
    %s = dist.reduce_scatter mean bucket 0 group 0 (%g) variables ["w"] : (tensor<5x2xf32>) -> tensor<5xf32>
    %own = dist.share_handle %w : !dfg.ref<tensor<5x2xf32>> -> !dfg.ref<tensor<5xf32>>
    dfg.apply_gradient_descent %own, %rate, %s : ...
    dist.all_gather_variables bucket 1 (%w) variables ["w"] : ...
    ```
    becomes
    ```mlir
    %r = dist.all_reduce mean bucket 0 group 0 (%g) variables ["w"] : tensor<5x2xf32>
    dfg.apply_gradient_descent %w, %rate, %r : ...
    ```
    What a task owns (`owners`, `dist.place`) is everyone's alike. Of servers that serve on their own, which are in the first task, the variables are that task's alone
    where others do no more than ask for them. With `device` this is done whatever the number of tasks: devices do not share memory, so that
    each has a variable's value and slots, and updates from the all-reduced gradient; shares stay where there are several replicas (`drt-align-shares`).
  }];
  let options = [Option<"device", "device", "bool", "false", "What is owned for any number of tasks, shares of one replica">];
  let dependentDialects = ["::distc::dist::DISTDialect"];
}

def SetPrecision : Pass<"drt-set-precision", "::distc::drt::EntryOp"> {
  let summary = "Matmuls and convolutions of float32 may take less of it";
  let description = [{
    With `precision=tf32` matrix units multiply ten bits of each element's mantissa (TF32) and add in float32; what is stored, variables, norms, losses and
    sums stay float32. Without this pass, and with `precision=fp32`, elements are multiplied as they are.

    With `precision=bf16` operands of matmuls are rounded to bfloat16, multiplied as that, and added in float32. A value that a matmul reads is rounded
    once; element-wise work and sums that read it too read the rounded value, so that it lies in memory as bfloat16 only. Variables and feeds are rounded for matmuls
    alone. A convolution's result is bfloat16, since the library has one type in all tensors (on processors the gradient of a filter is float32); a matmul's is where only matmuls and what follows them
    read it. Everything between is computed in float32, and variables, gradients on their way to a collective, and updates are float32.

    With `precision=fp16` operands of matmuls are float16, each scaled by a power of two by which its largest element is from 2^14 on below 2^15, and the result is
    scaled back in float32 (`HalfProducts.h`). Convolutions take TF32 on devices, and float32 on processors.

    Whatever the precision, a matmul whose operands a graph keeps as bfloat16 (on devices float16, too) takes them as they are: they were widened for it alone.
    Its result is rounded by the library where only a rounding reads it.

    With `device`, maxima of windows take bfloat16 too, and images with few channels get zeros behind them, which matrix units want.

    ```mlir
    %c = drt.matmul %a, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    ```
    becomes
    ```mlir
    %c = drt.matmul %a, %b {precision = "tf32"} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    ```
    or, with bfloat16, becomes
    ```mlir
    %a16 = linalg.generic ... ins(%a : tensor<4x4xf32>) ... { arith.truncf } -> tensor<4x4xbf16>
    %c = drt.matmul %a16, %b16 : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xf32>
    ```
  }];
  let options = [Option<"precision", "precision", "std::string", "\"fp32\"", "fp32, tf32, bf16 or fp16">,
                 Option<"device", "device", "bool", "false", "For the libraries of a GPU">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def AlignShares : Pass<"drt-align-shares", "::mlir::ModuleOp"> {
  let summary = "Replicas' shares are as long as a device's accesses want";
  let description = [{
    A share is ceil(n / N) elements, wherever that ends. On a device it is rounded up to a multiple of 16 bytes: a thread of an update reads and writes so
    many at once, and so does NCCL. The last replicas may have nothing.

    ```mlir
    dfg.variable @m : tensor<5xf32> {dist.shares = 2 : i64, dist.slice = #dist.slice<"m" [5, 2] at [0, 0]>}
    %s = dist.reduce_scatter mean bucket 0 group 0 (%g) variables ["w"] : (tensor<5x2xf32>) -> tensor<5xf32>
    ```
    becomes
    ```mlir
    dfg.variable @m : tensor<8xf32> {dist.shares = 2 : i64, dist.slice = #dist.slice<"m" [5, 2] at [0, 0]>}
    %s = dist.reduce_scatter mean bucket 0 group 0 (%g) variables ["w"] : (tensor<5x2xf32>) -> tensor<8xf32>
    ```
  }];
  let dependentDialects = ["::distc::dist::DISTDialect"];
}

def ConvertDfgToDrt : Pass<"convert-dfg-to-drt", "::mlir::ModuleOp"> {
  let summary = "Entries of the graph become plans: linalg on tensors, library calls, synchronization";
  let description = [{
    Every entry (`dfg.func` with `dfg.fetches`) becomes a `drt.entry`. Nodes are lowered by their interfaces or by the tables of
    Lower*.cpp; the order keeps the memory model of drt.h (PlanBuilder.h). All shapes must be static. Variables become `drt.variable`.

    ```mlir
    %y = dfg.relu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
    ```
    becomes a `linalg.generic` with `arith.maximumf`; `dfg.mat_mul` becomes `drt.matmul`. With `asserts` indices of gathers and scatters and labels
    of sparse cross entropies are checked before they are used (`drt.check_indices`).
  }];
  let options = [Option<"asserts", "asserts", "bool", "false", "Check indices and labels when the program runs">,
                 Option<"device", "device", "bool", "false", "for devices, where a placeholder with a default is that">];
  let dependentDialects = ["::distc::drt::DRTDialect", "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def CheckForGpu : Pass<"drt-check-for-gpu", "::mlir::ModuleOp"> {
  let summary = "Refuses what has no code for GPUs, at its node";
  let description = [{
    One error reports all of it, of every entry: at the first node, with a note for each other one.
    Random operations are kernels by then (`drt-random-kernels`): those left are refused.
  }];
}

def FuseEpilogues : Pass<"drt-fuse-epilogues", "::distc::drt::EntryOp"> {
  let summary = "A bias and an activation that follow a matmul or a convolution become part of the call";
  let description = [{
    Where the matmul is used by nothing else. `tanh(a b + bias)` is one `drt.matmul` with a bias and `epilogue = 2`. `activations` are those that
    the target's libraries have behind a bias: relu alone in those of GPUs.
  }];
  let options = [ListOption<"activations", "activations", "std::string", "relu and tanh; without any: both">];
}

def ConvolutionsToMatmuls : Pass<"drt-convolutions-to-matmuls", "::distc::drt::EntryOp"> {
  let summary = "Convolutions that are faster as matmuls are those";
  let description = [{
    A convolution's primitive has a layout of its own, to which the filter goes at every call, and from which its gradient comes back, in each replica; a
    matmul takes the filter as it lies, and what is done to matmuls with variables (`drt-join-contractions`) is done to it. Without groups, two kinds of
    convolutions become matmuls, with their gradients:

    - By 1 x 1 windows, without padding: pixels are rows, channels columns. Of strides, the pixels that are read are copied first, and the input's
      gradient is put at their places, among zeros.
    - Of few windows beside a large filter (a core at most half as many as it has outputs): each window is copied into a row, with its elements in the filter's
      order (im2col), and the input's gradient is the sum of what the windows have at its place.

    With bias and activation, so behind `drt-fuse-epilogues`.
    ```mlir
    %y = drt.conv2d %x, %f {descriptor = array<i64: 4, 7, 7, 64, 1, 1, 256, 7, 7, 1, 1, 1, 1, 0, 0, 0, 0, 1>} : (tensor<4x7x7x64xf32>, tensor<1x1x64x256xf32>) -> tensor<4x7x7x256xf32>
    ```
    becomes a `drt.matmul` of tensor<196x64xf32> and tensor<64x256xf32>, between reshapes.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def FuseElementwise : Pass<"drt-fuse-elementwise", "::distc::drt::EntryOp"> {
  let summary = "Chains of element-wise linalg operations become one";
  let description = [{
    A producer is fused into the only operation that reads it, and into each that does where it costs less than reading its result again; not
    across what changes the memory that it reads (an update of a variable, a reduction in place), and not into a kernel that is large already
    (`FusionPlan.cpp`). Time is linear in the operations: a plan of all fusions is made first, then each kernel is built once.
  }];
  let options = [
    Option<"maxRepeated", "max-repeated", "int64_t", "2",
           "instructions of arithmetic that reads as much as it makes and is done for each of several readers, so that its result is not written">,
  ];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect"];
}

def EliminateCommonSubexpressions : Pass<"drt-eliminate-common-subexpressions", "::distc::drt::EntryOp"> {
  let summary = "What an entry computes twice it computes once";
  let description = [{
    As `cse`, in entries. That one's hash leaves out what a kernel computes, so that it compares each two of the kernels that read the same value.
  }];
}

def SumContractions : Pass<"drt-sum-contractions", "::distc::drt::EntryOp"> {
  let summary = "Matmuls that are added up, and used nowhere else, are one operation";
  let description = [{
    The gradient of a matrix that a step uses several times, as each iteration of a recurrent loop does, is a sum of matmuls: one matmul whose
    contracted axis is that of all of them behind each other. No term is written to memory, and none is read. The sum's order is another one, and the
    same in every run.

    ```mlir
    %0 = drt.matmul %x0, %dy0 {transpose_a} ...
    %1 = drt.matmul %x1, %dy1 {transpose_a} ...
    %g = linalg.generic ins(%0, %1) { arith.addf } ...
    ```
    becomes
    ```mlir
    %g = drt.matmul_sum %x0, %x1, %dy0, %dy1 ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def StackContractions : Pass<"drt-stack-contractions", "::distc::drt::EntryOp"> {
  let summary = "Matmuls of few rows that share a right operand, and do not wait for each other, are one operation";
  let description = [{
    A recurrent layer multiplies each step's input by one matrix, and no step's input waits for the layer's own states: these matmuls are one, whose rows
    are all of them behind each other. It reads (and packs) the right operand once, and replicas need not share the work. Where a state is multiplied,
    each step waits for the one before it: those stay (`drt-join-contractions`, `drt-pack-operands`).

    The operation stands in the place of the last matmul; what takes the results of the others moves behind it. Nothing moves past what writes memory. A
    stack has `stack-rows` rows at most, so that its results are still in the cache when they are read.

    ```mlir
    %y0 = drt.matmul %x0, %w ...
    %z0 = linalg.generic ins(%y0) ...
    %y1 = drt.matmul %x1, %w ...
    ```
    becomes
    ```mlir
    %y0, %y1 = drt.matmul_stacked %x0, %x1 by %w ...
    %z0 = linalg.generic ins(%y0) ...
    ```
  }];
  let options = [
    Option<"maxRows", "max-rows", "int64_t", "192", "a matmul of more rows is one by itself">,
    Option<"stackRows", "stack-rows", "int64_t", "256", "rows of a stack, at most">,
    Option<"minElements", "min-elements", "int64_t", "4096", "a smaller right operand is packed in no time">,
  ];
}

def JoinContractions : Pass<"drt-join-contractions", "::mlir::ModuleOp"> {
  let summary = "Matmuls are computed over the joined batch of the task";
  let description = [{
    A matmul of a replica's few rows with a large variable is marked `joined`: the replicas compute it for all of them, each some columns, and
    so read the variable once and not once in each.

    A gradient that is a matmul and only feeds an update:
    The sum over replicas of `a_r^T b_r` is one matmul of the stacked operands. Where a plan has one task, its replicas lie side by side in
    memory: each computes its own rows of the result from all replicas' operands and updates from them while they are in cache, instead of
    writing a whole gradient each, adding them, and reading the sum. A task's only replica updates from such blocks as well where `drt.program` has
    `cores`, each of which takes some rows; they share matmuls with variables as replicas do. Nothing is done where the plan has several tasks.

    ```mlir
    %g = drt.matmul %x, %dy {transpose_a} ...
    drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["w"]} ...
    drt.all_reduce_wait 0
    drt.update {kernel = @sgd, variables = [@w], bucket = 0 : i32, member = 0 : i64} ...
    ```
    becomes
    ```mlir
    drt.all_reduce_start {bucket = 0 : i32, mean = true, names = []} ...
    drt.all_reduce_wait 0
    drt.matmul_update %x, %dy {kernel = @sgd, variables = [@w], transpose_a, scale = 0.5} ...
    ```
  }];
  let options = [
    Option<"replicas", "replicas", "int64_t", "0", "replicas of the task; 0: as `drt.program` says">,
    Option<"minElements", "min-elements", "int64_t", "32768", "smaller gradients are left to their bucket">,
    Option<"minShared", "min-shared", "int64_t", "262144", "matmuls with smaller variables are each replica's own">,
    Option<"maxRows", "max-rows", "int64_t", "192", "matmuls of more rows a replica are its own">,
  ];
}

def PackOperands : Pass<"drt-pack-operands", "::mlir::ModuleOp"> {
  let summary = "The right operand of several matmuls is packed once for all of them";
  let description = [{
    A processor multiplies a right operand in another form than it lies in memory: three bfloat16 for each float32 on matrix units, blocks that are copied elsewhere. A
    matmul of few rows spends half of its time on making it, and a recurrent layer multiplies by the same variable in every iteration. Where at least `min-uses` matmuls of
    float32 have one right operand (in the same direction: transposed or not, joined or not), `drt.pack` makes it in front of the first of them. What
    form that is, the program decides when it runs; here stands that it has six bytes an element.

    Counted are matmuls of `min-rows` to `max-rows` rows, of all replicas where they are joined, or of one core where several share them: of fewer, or where
    the product is small, no machine packs, and of more, packing is little beside the arithmetic.

    ```mlir
    %y0 = drt.matmul %x0, %w ...
    %y1 = drt.matmul %x1, %w ...
    ```
    becomes
    ```mlir
    %p = drt.pack %w : (tensor<256x1024xf32>) -> tensor<1573184xi8>
    %y0 = drt.matmul_packed %x0, %w, %p ...
    %y1 = drt.matmul_packed %x1, %w, %p ...
    ```
  }];
  let options = [
    Option<"minUses", "min-uses", "int64_t", "3", "matmuls that one right operand is packed for, at the least">,
    Option<"minRows", "min-rows", "int64_t", "48", "matmuls of fewer rows do not count">,
    Option<"maxRows", "max-rows", "int64_t", "512", "matmuls of more rows do not count">,
    Option<"minProduct", "min-product", "int64_t", "524288", "multiplications of the smallest matmul that counts">,
  ];
}

def FuseUpdates : Pass<"drt-fuse-updates", "::mlir::ModuleOp"> {
  let summary = "Updates compute what only they read";
  let description = [{
    A gradient that is clipped, or to which a decay is added, is computed for all elements by each replica, written and read again, while an
    update needs the elements of its range. Where an element-wise operation has one reader, an update, and reads elements at the same place
    or scalars, the update's range kernel computes it. What it reads of the variables that are updated are their old elements, which the
    kernel has anyway; of others and of what is reduced in place nothing may be written in between.

    ```mlir
    %clipped = linalg.generic ... ins(%g, %scale : tensor<8xf32>, tensor<f32>) ... -> tensor<8xf32>    // x * y
    drt.update %clipped {kernel = @sgd, variables = [@w], count = 8 : i64}                             // w - g
    ```
    becomes
    ```mlir
    drt.update %g, %scale {kernel = @update_fused_0, variables = [@w], count = 8 : i64}                // w - g * scale
    ```
  }];
}

def DrawInUpdates : Pass<"drt-draw-in-updates", "::distc::drt::EntryOp"> {
  let summary = "Updates draw the random numbers that only they read";
  let description = [{
    What initializes a table would lie in the arena of each replica as large as the table, and each replica would draw all of it to use its range. Where an
    update alone reads random numbers, one for each of its elements, it draws those of a range when it comes to it. The numbers are the same: any part of a
    generator's stream can be drawn by itself.

    ```mlir
    %numbers = drt.random {distribution = 0 : i32, seed = 1 : i64, seed2 = 2 : i64} : tensor<8xf32>
    drt.update %numbers {kernel = @assign, variables = [@table], count = 8 : i64}
    ```
    becomes
    ```mlir
    %numbers = drt.draw {distribution = 0 : i32, seed = 1 : i64, seed2 = 2 : i64} : tensor<8xf32>
    drt.update %numbers {kernel = @assign, variables = [@table], count = 8 : i64}
    ```
  }];
}

def OutlineKernels : Pass<"drt-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "Every linalg operation becomes a kernel on buffers, called by drt.launch; equal kernels are one";
  let description = [{
    ```mlir
    %y = linalg.generic ... ins(%x) ...
    ```
    becomes
    ```mlir
    %y = drt.launch @kernel_0(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    drt.kernel @kernel_0(%x: memref<4x8xf32>, %y: memref<4x8xf32>) { linalg.generic ... }
    ```
    Constants that a kernel reads go into it; a constant that a library call takes is written by a kernel. Range kernels are made unique too.
  }];
  let dependentDialects = ["::distc::drt::DRTDialect", "::mlir::memref::MemRefDialect"];
}

def ScheduleForGpu : Pass<"drt-schedule-for-gpu", "::mlir::ModuleOp"> {
  let summary = "Kernels become GPU functions: their work is laid over a grid of threads";
  let description = [{
    Every kernel becomes a `gpu.func` of its name in `gpu.module @kernels`, with the same arguments and the sizes of its launch; the constants that
    it reads move along. `drt.schedule` says which schedule was taken (passes/lower/gpu, a file each). All buffers begin at multiples of 16 bytes.

    ```mlir
    drt.kernel @kernel_0(%x: memref<4096xf32>, %y: memref<4096xf32>) { linalg.generic ... }
    ```
    becomes
    ```mlir
    gpu.module @kernels {
      gpu.func @kernel_0(%x: memref<4096xf32>, %y: memref<4096xf32>) kernel
          attributes {drt.grid = array<i64: 8, 1, 1>, drt.block = array<i64: 128, 1, 1>, drt.schedule = "elementwise"} { ... }
    }
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def WidenNarrowFloats : Pass<"drt-widen-narrow-floats"> {
  let summary = "Kernels compute in float32 what is float16 or bfloat16 in memory";
  let description = [{
    The first step of `--lower-kernels` and `--lower-gpu-kernels`. Every operation on narrow floats takes them as float32, and its result is rounded. Casts
    of bfloat16 become arithmetic on its bits: no library that an executable is linked with need have them.

    ```mlir
    %z = arith.addf %x, %y : f16
    ```
    becomes
    ```mlir
    %0 = arith.extf %x : f16 to f32
    %1 = arith.extf %y : f16 to f32
    %2 = arith.addf %0, %1 : f32
    %z = arith.truncf %2 : f32 to f16
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def PrepareKernels : Pass<"drt-prepare-kernels", "::distc::drt::KernelOp"> {
  let summary = "What a kernel may assume: distinct buffers, contraction, elementary functions as polynomials";
  let description = [{
    The first step of `--lower-kernels`.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::vector::VectorDialect"];
}

def LoopOverRows : Pass<"drt-loop-over-rows", "::distc::drt::KernelOp"> {
  let summary = "The operations of a kernel go through its rows together";
  let description = [{
    For CPUs: what `drt-fuse-rows` put into one kernel is one loop over the rows, in which each operation has the loops within a row. A row is read from memory by the
    first of them; what only the kernel uses is a buffer of one row, in the first-level cache.

    ```mlir
    %exp = memref.alloc() : memref<1024x128xf32>
    linalg.generic ins(%x, %max) outs(%exp) ...
    linalg.generic ins(%exp) outs(%sum) ...
    ```
    becomes
    ```mlir
    %exp = memref.alloca() : memref<128xf32>
    scf.for %row = 0 to 1024 { scf.for %column = 0 to 128 { ... } scf.for %column = 0 to 128 { ... } }
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def DivideKernels : Pass<"drt-divide-kernels", "::mlir::ModuleOp"> {
  let summary = "The cores of a replica each compute a part of a kernel's loops";
  let description = [{
    Where `drt.program` has `cores`. A kernel takes the part [begin, end) of one of its loops as its first two arguments, and
    says how long that loop is and how much of it is worth a core (`divided`); its launch is a call of drt_parallel_for. The loop is the outermost
    whose iterations write different elements of every result, and that cores share evenly (a multiple of them, or many): no sum is divided, so that the
    number of cores changes no bit of a result. Large sums are in parts (`drt-split-reductions`); others have no such loop and stay one core's.
    ```mlir
    drt.kernel @kernel_0(%x: memref<64x256xf32>, %y: memref<64x256xf32>)
    ```
    becomes
    ```mlir
    drt.kernel @kernel_0(%begin: i64, %end: i64, %x: memref<64x256xf32>, %y: memref<64x256xf32>) attributes {divided = array<i64: 64, 32>} {
      scf.for %i = %begin to %end { scf.for %j = 0 to 256 { ... } }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def MergeLoops : Pass<"drt-merge-loops", "::distc::drt::KernelOp"> {
  let summary = "Loops of kernels that walk on where the last one ended are one";
  let description = [{
    For CPUs, behind `drt-divide-kernels`: LLVM would unroll short loops in short loops whole, which takes it long and gains nothing. Sums keep their order: where their loops are
    the inner ones, they stay, as do those whose counter is asked for.
    ```mlir
    linalg.generic ins(%x : memref<2x8x8x352xf32>) outs(%y : memref<2x8x8x352xf32>) ...
    // becomes
    %a = memref.collapse_shape %x [[0, 1, 2, 3]] : memref<2x8x8x352xf32> into memref<45056xf32>
    %b = memref.collapse_shape %y [[0, 1, 2, 3]] : memref<2x8x8x352xf32> into memref<45056xf32>
    linalg.generic ins(%a : memref<45056xf32>) outs(%b : memref<45056xf32>) ...
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect"];
}

def SplitLoops : Pass<"drt-split-loops", "::distc::drt::KernelOp"> {
  let summary = "Loops of kernels are split where a branch on their counter changes";
  let description = [{
    Joined and padded tensors ask at each element which part it lies in. Where a loop's bounds and what its counter is compared with are
    numbers, each range becomes a loop of its own, which can be vectorized. A kernel that would become too long keeps its branches.
    ```mlir
    scf.for %i = %c0 to %c8 step %c1 {          scf.for %i = %c0 to %c3 step %c1 { // of %a
      %in = arith.cmpi ult, %i, %c3       -->   scf.for %i = %c3 to %c8 step %c1 { // of %b
      %x = scf.if %in { ... %a } else { ... %b }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def ConvertKernelsToLLVM : Pass<"convert-kernels-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Kernels become LLVM functions that take one bare pointer a buffer";
  let description = [{
    Elementary functions become LLVM's intrinsics, or calls of the C library's where there is none.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect"];
}

def PrepareGpuKernels : Pass<"drt-prepare-gpu-kernels", "::mlir::gpu::GPUModuleOp"> {
  let summary = "What a kernel of a grid's threads may assume: sizes of grid and block, distinct buffers, contraction";
  let description = [{
    The first step of `--lower-gpu-kernels`. `drt.grid` and `drt.block` become what bounds thread and block ids. `memref.alloca` of
    shared memory (`#gpu.address_space<workgroup>`) becomes the kernel's. Powers of integers become loops.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect"];
}

def MakeImages : Pass<"drt-make-images", "::mlir::ModuleOp"> {
  let summary = "Compiles `gpu.module @kernels` to what drivers load: the module's `drt.images`";
  let description = [{
    The kernels are in NVVM (`--lower-gpu-kernels`). For the chips of the target a cubin each, where ptxas is found, and PTX of the newest one for
    later chips. For `cuda:emulated` a shared object of the host, whose kernels call the functions of runtime/cuda/emulator/emulated.h.

    `drt.images` is an array of `{arch, data : string}`, cubins first: "sm_90", "compute_90" (PTX, ends with a zero), "host".
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cuda:sm_90\"", "as distc's --target">,
    Option<"ptxOnly", "ptx-only", "bool", "false", "no cubins">,
    Option<"verbose", "verbose", "bool", "false", "remarks of the registers that kernels use, and what they spill">,
    Option<"cached", "cached", "bool", "false", "kernels of the host that were compiled before are taken from the user's cache">,
  ];
}

def InsertCopies : Pass<"drt-insert-copies", "::mlir::ModuleOp"> {
  let summary = "Values that their memory does not keep are copied to the arena";
  let description = [{
    Up to here a tensor is a value: what it was where it was made. From here on it is memory, which others write:
    - A variable's old value that is used behind an update of the variable, or by the update itself, is copied where it is read.
    - A bucket is reduced in place. A gradient that is used behind the bucket's start too, or is a member of a second bucket, or lies elsewhere (a feed, a
      variable, the result of another bucket), is copied, and the copy is the member.
    - What is fetched lies in the arena.

    Passes before it may move and join operations as values allow. It runs in time linear in the operations.

    ```mlir
    %old = drt.read @w : tensor<40xf32>
    drt.update %new {variables = [@w], ...} : (tensor<40xf32>) -> ()
    drt.update %old {variables = [@before], ...} : (tensor<40xf32>) -> ()
    ```
    becomes
    ```mlir
    %w = drt.read @w : tensor<40xf32>
    %old = drt.copy %w : (tensor<40xf32>) -> tensor<40xf32>
    drt.update %new {variables = [@w], ...} : (tensor<40xf32>) -> ()
    drt.update %old {variables = [@before], ...} : (tensor<40xf32>) -> ()
    ```
  }];
  let dependentDialects = ["::distc::drt::DRTDialect"];
}

def RecomputeValues : Pass<"drt-recompute-values", "::mlir::ModuleOp"> {
  let summary = "Values are computed again instead of kept, until the entries fit in memory (distc compile --max-memory)";
  let description = [{
    A step keeps what its forward pass computes for the backward pass. Where that is more than there is room for, the pass looks at the place of the entry where
    most is kept, chooses the value that costs least time a byte to do without from there to its next reader, and runs again there what gives it: one operation, or a chain of
    them whose inputs are kept. What is run again has no effect but its results, has no part in what replicas do together, and reads the same: variables that
    are not written and gradients that are not reduced between. Runs behind `drt-insert-copies` and `drt-insert-barriers`; barriers are inserted again behind it, for variables that are read later. A remark says how many values, and by how much the step is estimated to take longer; what does not fit
    is an error that names what takes most.

    ```mlir
    %a = drt.launch @relu(%x) ...           // kept until the last line
    %b = drt.launch @large(%a) ...
    %c = drt.launch @gradient(%a, %dy) ...
    ```
    becomes
    ```mlir
    %a = drt.launch @relu(%x) ...
    %b = drt.launch @large(%a) ...
    %again = drt.launch @relu(%x) ...
    %c = drt.launch @gradient(%again, %dy) ...
    ```
  }];
  let options = [
    Option<"maxBytes", "max-bytes", "int64_t", "0", "bytes of a task's variables and of its replicas' arenas together">,
  ];
}

def InsertBarriers : Pass<"drt-insert-barriers", "::mlir::ModuleOp"> {
  let summary = "The replicas of a task meet where their accesses could race";
  let description = [{
    The replicas of a task on CPUs are threads that share its variables and buckets, and are not in step. An access is safe from an earlier one of another
    replica where both only read, or their extents are cut alike (a replica's range of elements, its rows), or the replicas met between: at a barrier, in
    an operation that joins them, or by the wait for a bucket that was started behind the earlier access. Where none holds a barrier is inserted, as late as
    possible: then no plan has fewer. What operations access is said by `AccessInterface`.

    ```mlir
    %norm = drt.launch @norm(%w) : (tensor<64x64xf32>) -> tensor<f32>
    drt.update %norm {variables = [@w], count = 4096 : i64, ...} : (tensor<f32>) -> ()
    ```
    becomes
    ```mlir
    %norm = drt.launch @norm(%w) : (tensor<64x64xf32>) -> tensor<f32>
    drt.barrier
    drt.update %norm {variables = [@w], count = 4096 : i64, ...} : (tensor<f32>) -> ()
    ```
    Nothing is done where each task has one replica.
  }];
  let dependentDialects = ["::distc::drt::DRTDialect"];
}

def JoinRowExchanges : Pass<"drt-join-row-exchanges", "::distc::drt::EntryOp"> {
  let summary = "Rows of several tables are asked for at once, and pushed at once";
  let description = [{
    Each `drt.pull_rows` is a question and an answer over the network, and replicas wait for it. A model with 26 tables in two shards each would wait 52
    times. One that does not need another's rows is joined to it: what makes its indices moves in front of the first of them. Likewise `drt.push_rows` become
    one where the last of them is, and what reads the rows moves behind it. Tables whose indices are of 32 and of 64 bits stay apart, and so does a table that
    something in between updates. Buckets are numbered anew, in the order in which they start.

    ```mlir
    %a = drt.pull_rows [@t0][%i] from [0] bucket 0 : (tensor<8xi32>) -> tensor<8x4xf32>
    %j = ... %ids
    %b = drt.pull_rows [@t1][%j] from [1] bucket 1 : (tensor<8xi32>) -> tensor<8x4xf32>
    ```
    becomes
    ```mlir
    %j = ... %ids
    %a, %b = drt.pull_rows [@t0, @t1][%i, %j] from [0, 1] bucket 0 : (tensor<8xi32>, tensor<8xi32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
    ```
  }];
  let dependentDialects = ["::distc::drt::DRTDialect"];
}

def PipelineOwners : Pass<"drt-pipeline-owners", "::mlir::ModuleOp"> {
  let summary = "Updates by owners begin while gradients still come, and new values go out meanwhile";
  let description = [{
    Between tasks a gradient goes to the owner of its variable, and the new value comes back: one after the other a network carries one way at a time. A
    bucket is marked `pipelined` where all of its gradients may go piece by piece: each is read by one update of its owner alone, element by element, and
    from the wait for the bucket on nothing else of the entry accesses the variable, until its gather has been waited for. So a task that does not own it
    may be given the first elements of the new value when it reaches the wait. A gather is marked where all of its variables come so.

    Whoever waits for a gather, or for a bucket that is started behind it, has done all updates of the pipelined buckets before it: the communication finishes
    a gather before it goes on.

    ```mlir
    drt.all_reduce_start(%0) {bucket = 0 : i32, names = ["w"], owners = array<i64: 0>, scatter, ...} : (tensor<64x64xf32>) -> ()
    drt.all_reduce_wait 0
    drt.update() {bucket = 0 : i32, member = 0 : i64, owner = 0 : i64, variables = [@w], ...} : () -> ()
    drt.gather_start() {bucket = 1 : i32, owners = array<i64: 0>, variables = [@w]} : () -> ()
    drt.all_reduce_wait 1
    ```
    Both buckets become `pipelined`. Without several tasks nothing is done. `drt-verify-order` proves the marks.
  }];
}

def VerifyOrder : Pass<"drt-verify-order", "::mlir::ModuleOp"> {
  let summary = "Refuses a plan in which accesses could meet in the wrong order";
  let description = [{
    Proves of every entry of a plan for CPUs, without trusting the passes that made it:
    - *No race*: two accesses of different replicas to memory that they share have a meeting between them, unless both read or their extents are cut alike
      (see `drt-insert-barriers`).
    - *Values are what they were*: no tensor is read behind a write of the variable whose memory it is, or behind the start of the bucket that it is
      reduced in.
    - *Buckets*: a bucket is started once and waited for by every replica; its result and its updates come behind the wait. Variables whose shares
      are gathered are not touched from the start of the gather to the wait for it, and shares that a task wrote are gathered. Of what is `pipelined`, all
      that `drt-pipeline-owners` says.
    - *Places* (where `at` says them): no result is written over memory that is still read, by this replica or by another one that is behind.
    - *Meetings*: an entry is one block without branches, so that every replica reaches each barrier and wait equally often.

    An operation that does not say what it accesses (`AccessInterface`) is refused. It runs in every compile, in O(n log n).
  }];
}

def PlanMemory : Pass<"drt-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Gives every tensor of an entry its place in the arena";
  let description = [{
    Tensors whose lives overlap lie apart, others may share memory; every place is aligned to 64 bytes. A result never shares memory with an
    operand of its own operation: kernels take their addresses as distinct. A bucket's members lie side by side, in order. What other
    replicas read (buckets, operands of `drt.matmul_update`) and what is fetched keeps its memory until the end of the entry, since replicas
    are not in step. Runs behind `drt-insert-copies`.

    ```mlir
    %0 = drt.launch @relu(%x) : (tensor<32x8xf32>) -> tensor<32x8xf32>
    ```
    becomes
    ```mlir
    %0 = drt.launch @relu(%x) {at = array<i64: 0>} : (tensor<32x8xf32>) -> tensor<32x8xf32>
    ```
    and the module carries `drt.arena_bytes`, the largest entry's need.

    With `device` the variables are placed too, in the replica's block of variables: `at` of each `drt.variable`, aligned to 256 bytes, the first
    at 0. The module then carries the block's size, `drt.variable_bytes`; it marks a program for devices.
  }];
  let dependentDialects = ["::distc::drt::DRTDialect"];
  let options = [Option<"device", "device", "bool", "false", "a replica is a device, with its own copy of the variables">];
}

// ---- GPUs ---------------------------------------------------------------------------------------
def JoinReductions : Pass<"drt-join-reductions", "::distc::drt::EntryOp"> {
  let summary = "Reductions that go through the same elements are one, with several results";
  let description = [{
    For GPUs, behind `drt-fuse-elementwise`. A batch normalization's gradient needs two sums over the layer's gradient; one kernel for both reads it once.
    The later reduction moves to the earlier one, where all that it reads is there.

    ```mlir
    %a = linalg.generic {iterator_types = ["reduction", "parallel"]} ins(%g : ...) outs(%zero : ...) ...
    %b = linalg.generic {iterator_types = ["reduction", "parallel"]} ins(%g, %x : ...) outs(%zero : ...) ...
    ```
    becomes
    ```mlir
    %a:2 = linalg.generic {iterator_types = ["reduction", "parallel"]} ins(%g, %x : ...) outs(%zero, %zero : ...) ...
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def SplitReductions : Pass<"drt-split-reductions", "::distc::drt::EntryOp"> {
  let summary = "Reductions with few results are made in parts, which fill the chip or a processor's cores, and whose sums are made behind them";
  let description = [{
    For GPUs, behind `drt-fuse-elementwise`. A sum over all images and pixels has a result a channel: 64 results would be the work of one block of threads, on one of the
    chip's multiprocessors. So the outermost reduction loops, or equal parts of one, become parallel, and a second reduction joins what they found: along rows, where
    `drt-fuse-rows` has it together with what follows. Which parts there are follows from the sizes alone, so sums have the same order in each run.

    ```mlir
    %sum = linalg.generic {iterator_types = ["reduction", "parallel"]} ins(%x : tensor<131072x64xf32>) outs(%zero : tensor<64xf32>) ...
    ```
    becomes
    ```mlir
    %y = tensor.expand_shape %x [[0, 1], [2]] : tensor<131072x64xf32> into tensor<256x512x64xf32>
    %parts = linalg.generic {iterator_types = ["parallel", "reduction", "parallel"]} ins(%y) outs(%zeros : tensor<64x256xf32>) ...
    %sum = linalg.generic {iterator_types = ["parallel", "reduction"]} ins(%parts) outs(%zero : tensor<64xf32>) ...
    ```
    Arguments of maxima, whose elements depend on where the loop is, are split where whole loops do.

    With `cores`, for a replica on several cores of a processor: at most 16 parts, whatever the number of cores, each of all results
    (`tensor<16x64xf32>`), so that a core reads what lies together.
  }];
  let options = [Option<"cores", "cores", "bool", "false", "parts for the cores of a processor">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def FuseRows : Pass<"drt-fuse-rows", "::distc::drt::EntryOp"> {
  let summary = "Operations over the same rows become one kernel: softmax, cross entropy, layer normalization";
  let description = [{
    Behind `drt-fuse-elementwise`. A group has a reduction of rows, and operations that need of each other's results their own row alone
    (through reshapes too). Its operations get the group's number as `drt.rows`; `drt-outline-kernels` makes one kernel of them, in the place of the
    first, with a `memref.alloc` for each value that only the kernel uses. What the others need from outside moves there, where that changes nothing.
    With `column-sums` (GPUs) sums of columns, in parts of equally many rows, join a group that reads or makes the same rows: a part is a block's.

    ```mlir
    %max = linalg.generic {iterator_types = ["parallel", "reduction"]} ins(%x) ...
    %exp = linalg.generic {iterator_types = ["parallel", "parallel"]} ins(%x, %max) ...
    ```
    becomes
    ```mlir
    %max = linalg.generic {drt.rows = 0, iterator_types = ["parallel", "reduction"]} ins(%x) ...
    %exp = linalg.generic {drt.rows = 0, iterator_types = ["parallel", "parallel"]} ins(%x, %max) ...
    ```
  }];
  let options = [
    Option<"maxRowBytes", "max-row-bytes", "int64_t", "40 * 1024",
           "of one row, what operations make for each other: on GPUs it must fit into a block's shared memory">,
    Option<"minRows", "min-rows", "int64_t", "1", "operations over fewer rows are kernels of their own">,
    Option<"columnSums", "column-sums", "bool", "true", "sums of columns join what reads the same rows">,
  ];
}

def RepeatInRows : Pass<"drt-repeat-in-rows", "::distc::drt::EntryOp"> {
  let summary = "A kernel of rows computes again what another one would write for it, where that moves fewer bytes";
  let description = [{
    For GPUs, behind `drt-fuse-rows`. What a layer normalization normalizes, a bfloat16 residual and a float32 matmul's result, is read by its gradient too: to read the two again takes
    6 bytes an element, to write their sum and to read it 8. Element-wise rows of rows that are in memory anyway are computed in each group that reads them, if that
    moves less and keeps no more in memory, and the group's threads can hold them.

    ```mlir
    %x = linalg.generic {drt.rows = 0} ins(%residual, %y : tensor<64x128xbf16>, tensor<64x128xf32>) ...
    %mean = linalg.generic {drt.rows = 0} ins(%x) ...
    %dx = linalg.generic {drt.rows = 1} ins(%dy, %x) ...
    ```
    becomes
    ```mlir
    %x = linalg.generic {drt.rows = 0} ins(%residual, %y : tensor<64x128xbf16>, tensor<64x128xf32>) ...
    %mean = linalg.generic {drt.rows = 0} ins(%x) ...
    %x_again = linalg.generic {drt.rows = 1} ins(%residual, %y : tensor<64x128xbf16>, tensor<64x128xf32>) ...
    %dx = linalg.generic {drt.rows = 1} ins(%dy, %x_again) ...
    ```
  }];
}

def FoldTransposes : Pass<"drt-fold-transposes", "::distc::drt::EntryOp"> {
  let summary = "Matmuls and convolutions take operands in the order that the graph has them in";
  let description = [{
    A matmul reads each factor by rows or by columns: what transposes the last two axes in front of it, or of its result, only moves them once more. Where
    other axes change places too (the heads of attention), the copy stays, with the last axis in its place.

    ```mlir
    %t = linalg.generic ... ins(%w : tensor<768x256xf32>) ... -> tensor<256x768xf32>
    %y = drt.matmul %x, %t : ...
    ```
    becomes
    ```mlir
    %y = drt.matmul %x, %w {transpose_b} : (tensor<512x256xf32>, tensor<768x256xf32>) -> tensor<512x768xf32>
    ```

    With `filters`, convolutions take theirs as OIHW, as graphs of PyTorch have them. The CPU's library reorders what it is given anyway, so that a
    transposition to HWIO would only move them once more; so would one of a filter's gradient from HWIO.

    ```mlir
    %t = linalg.generic ... ins(%w : tensor<16x3x5x5xf32>) ... -> tensor<5x5x3x16xf32>
    %y = drt.conv2d %x, %t {descriptor = ...} : ...
    ```
    becomes
    ```mlir
    %y = drt.conv2d %x, %w {descriptor = ..., filter_layout = "OIHW"} : (tensor<1x8x8x3xf32>, tensor<16x3x5x5xf32>) -> tensor<1x8x8x16xf32>
    ```
  }];
  let options = [Option<"filters", "filters", "bool", "true", "Convolutions' filters too">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def PrepareForGpu : Pass<"drt-prepare-for-gpu", "::distc::drt::EntryOp"> {
  let summary = "The layouts that the libraries of GPUs want";
  let description = [{
    Convolutions take filters as OHWI (`filter_layout`) and give their gradients so; transposes, which become kernels, stand between them and what the
    graph has as HWIO. One transpose serves all convolutions with a variable until it is updated. A depthwise filter, (h, w, c, multiplier), becomes
    (c * multiplier, h, w, 1). Filters of float64 are OIHW.

    ```mlir
    %y = drt.conv2d %x, %w {descriptor = ...} : (tensor<1x8x8x3xf32>, tensor<5x5x3x16xf32>) -> tensor<1x8x8x16xf32>
    ```
    becomes
    ```mlir
    %t = linalg.generic ... ins(%w : tensor<5x5x3x16xf32>) ... -> tensor<16x5x5x3xf32>
    %y = drt.conv2d %x, %t {descriptor = ..., filter_layout = "OHWI"} : ...
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def ExpandAroundTransposes : Pass<"drt-expand-around-transposes", "::distc::drt::EntryOp"> {
  let summary = "What a transposition is fused with has its axes: reshapes between them move away";
  let description = [{
    For GPUs. The heads of an attention are axes of a transposition that a reshape takes apart before, and joins behind it, and element-wise operations
    and sums on the reshape's other side could not be one kernel with it. They take the axes of the transposition, and the reshape moves to
    their operands or results, where it is none of memory's business.

    ```mlir
    %s = linalg.generic ... ins(%x, %bias : tensor<8x64xf32>, tensor<64xf32>) ... -> tensor<8x64xf32>
    %e = tensor.expand_shape %s [[0, 1], [2, 3]] output_shape [2, 4, 4, 16] : tensor<8x64xf32> into tensor<2x4x4x16xf32>
    %t = linalg.generic {indexing_maps = [(b, h, t, d) -> (b, t, h, d), ...]} ins(%e) ... -> tensor<2x4x4x16xf32>
    ```
    becomes
    ```mlir
    %e = tensor.expand_shape %x ... into tensor<2x4x4x16xf32>
    %c = tensor.expand_shape %bias ... into tensor<4x16xf32>
    %s = linalg.generic ... ins(%e, %c) ... -> tensor<2x4x4x16xf32>
    %t = linalg.generic {indexing_maps = [(b, h, t, d) -> (b, t, h, d), ...]} ins(%s) ... -> tensor<2x4x4x16xf32>
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def FuseAttention : Pass<"drt-fuse-attention", "::distc::drt::EntryOp"> {
  let summary = "Matmuls of queries with keys, softmax and matmuls with values become one attention, and so do their gradients";
  let description = [{
    Scores and probabilities, of tokens x tokens for each head, need not go to memory: what is made of them is `drt.attention`. On GPUs, where matrices are of bfloat16
    (`drt-set-precision`) and heads have a size of 16, 32, ... 128, `drt.attention_query_gradient` and `drt.attention_key_value_gradient` stand beside it, on CPUs, where they are of float32,
    `drt.attention_gradient`. Softmax, its gradient, a factor and what is added to scores (a mask) are found by what they compute, however the graph spells it. Only where nothing else reads scores,
    probabilities or their gradients: a graph that fetches them, drops some of them at random, or learns what it adds stays as it is. Transpositions of heads
    and tokens around it go.

    ```mlir
    %s = drt.matmul %q, %k {transpose_b} : (tensor<2x4x64x16xbf16>, tensor<2x4x64x16xbf16>) -> tensor<2x4x64x64xbf16>
    %p = ... softmax of 0.25 * %s ...
    %o = drt.matmul %p, %v : (tensor<2x4x64x64xbf16>, tensor<2x4x64x16xbf16>) -> tensor<2x4x64x16xbf16>
    ```
    becomes, with what %q, %k and %v are transpositions of,
    ```mlir
    %o, %statistics = drt.attention %q, %k, %v {scale = 0.25 : f32} : (tensor<2x64x4x16xbf16>, ...) -> (tensor<2x64x4x16xbf16>, tensor<2x2x4x64xf32>)
    ```
  }];
  let options = [Option<"device", "device", "bool", "true", "attentions of bfloat16, with the gradients that GPUs have; else of float32, with the one of CPUs">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def FuseBiasGradients : Pass<"drt-fuse-bias-gradients", "::distc::drt::EntryOp"> {
  let summary = "The gradient of a bias is made with that of its layer's matrix";
  let description = [{
    For GPUs, of bfloat16 and float16. A layer's two gradients read the same tensor: `x^T g`, and the sums of g's columns, which are an epilogue of the matmul. Reshapes and
    what widens g stand between them at most.

    ```mlir
    %w = drt.matmul %x, %g {transpose_a} : (tensor<64x32xbf16>, tensor<64x16xbf16>) -> tensor<32x16xf32>
    %wide = linalg.generic ... ins(%g) { arith.extf }
    %b = linalg.generic ... ins(%wide) { arith.addf } -> tensor<16xf32>
    ```
    becomes
    ```mlir
    %w, %b = drt.matmul_bias_grad %x, %g : (tensor<64x32xbf16>, tensor<64x16xbf16>) -> (tensor<32x16xf32>, tensor<16xf32>)
    ```
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
}

def FuseAdditions : Pass<"drt-fuse-additions", "::distc::drt::EntryOp"> {
  let summary = "What is added to matmuls is an operand of theirs";
  let description = [{
    For GPUs. The two branches of a residual connection, and the gradients of what several layers read (a query, a key and a value), are sums with matmuls
    among their terms. A matmul has arithmetic to do while its operands come, so that the other terms, which it reads, and its own result, which nobody
    reads again, cost no time of their own. Only where what is added lies in memory anyway: an element-wise operation that a sum alone reads is one kernel with it.

    ```mlir
    %p = drt.matmul %x, %w : (tensor<64x32xbf16>, tensor<32x16xbf16>) -> tensor<64x16xf32>
    %y = linalg.generic ins(%residual, %p) { arith.addf } -> tensor<64x16xf32>
    ```
    becomes
    ```mlir
    %y = drt.matmul_add %x, %w, %residual : (tensor<64x32xbf16>, tensor<32x16xbf16>, tensor<64x16xf32>) -> tensor<64x16xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def GroupSums : Pass<"drt-group-sums", "::mlir::ModuleOp"> {
  let summary = "Sums of whole tensors by one rule, as the norms of all gradients, are two launches for all of them";
  let description = [{
    For GPUs. Each of them would be a launch or two of its own, which takes longer than reading most gradients. A block of the first launch adds up 16,384 elements of
    one tensor, a warp of the second one the parts of a tensor, with what is made of the sum (a factor). They stand behind the last tensor that is summed; a sum that is read
    before stays as it is, and so do fewer than eight.

    ```mlir
    %n0 = linalg.generic ... ["reduction", "reduction"] ins(%g0) { %s = arith.mulf %in, %in  %t = arith.addf %out, %s } -> tensor<f32>
    %n1 = linalg.generic ... ins(%g1) ...
    ```
    becomes
    ```mlir
    %parts = drt.launch @sums_parts_0(%g0, %g1, ...) : ... -> tensor<52xf32>
    %n:8 = drt.launch @sums_whole_1(%parts) : (tensor<52xf32>) -> (tensor<f32>, tensor<f32>, ...)
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def GroupRowSums : Pass<"drt-group-row-sums", "::mlir::ModuleOp"> {
  let summary = "Small sums of rows, as the second ones of the gradients of normalizations' scales, are one launch";
  let description = [{
    For GPUs, behind `drt-fuse-rows`. The sums of columns that a kernel of rows makes are of its blocks, and their sum is a launch of some microseconds behind each. They wait for the
    first operation that reads one of them, a bucket's exchange or the norm of all gradients, and all that wait are one launch in front of it, a warp a row; fewer than four
    sums are left alone, and what is summed is at most 128 MiB.

    ```mlir
    %s0 = linalg.generic ... ["parallel", "reduction"] ins(%parts0 : tensor<1024x256xf32>) ... -> tensor<1024xf32>
    %s1 = linalg.generic ... ["parallel", "reduction"] ins(%parts1 : tensor<1024x256xf32>) ... -> tensor<1024xf32>
    ```
    becomes
    ```mlir
    %s:2 = drt.launch @row_sums_joined_0(%parts0, %parts1) : ... -> (tensor<1024xf32>, tensor<1024xf32>)
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def GroupRoundings : Pass<"drt-group-roundings", "::mlir::ModuleOp"> {
  let summary = "Variables that matmuls read as bfloat16 are rounded by one launch";
  let description = [{
    For GPUs. Each would be a launch of its own, most of them of a bias, in front of the first matmul that reads it. They are rounded where the first one is, as long as nothing in between
    writes to memory; fewer than eight are left alone.

    ```mlir
    %v = drt.read @v : tensor<64x32xf32>
    %r = linalg.generic ... ins(%v) { arith.truncf } -> tensor<64x32xbf16>
    ```
    and others become
    ```mlir
    %v = drt.read @v : tensor<64x32xf32>
    %w = drt.read @w : tensor<32xf32>
    %r:8 = drt.launch @round_variables_0(%v, %w, ...) : (tensor<64x32xf32>, tensor<32xf32>, ...) -> (tensor<64x32xbf16>, tensor<32xbf16>, ...)
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def AttentionKernels : Pass<"drt-attention-kernels", "::mlir::ModuleOp"> {
  let summary = "An attention and its gradients become launches of kernels that matrix units compute";
  let description = [{
    Places stay. A kernel has 64 rows of a head a block, 16 a warp, and goes through the other side's rows; matmuls are `nvvm.mma.sync` of bfloat16, added up in
    float32.

    ```mlir
    %o, %sums = drt.attention %q, %k, %v {at = array<i64: 0, 4096>, scale = 0.25 : f32} : ...
    ```
    becomes
    ```mlir
    %o, %sums = drt.launch @attention_forward_0(%q, %k, %v) {at = array<i64: 0, 4096>} : ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def ReadInPlace : Pass<"drt-read-in-place", "::distc::drt::EntryOp"> {
  let summary = "A variable is not copied to be read, where nothing updates it in between";
  let description = [{
    Small variables are copied where they are read, since the replicas of a task on CPUs share them and are not in step. A device has its own, and does its
    work in one order: only a value that outlives an update of its variable is copied. Runs behind `drt-outline-kernels`: kernels stay where they are.

    ```mlir
    %old = drt.read @rate : tensor<f32>
    %rate = drt.copy %old : (tensor<f32>) -> tensor<f32>
    drt.update %rate {kernel = @sgd, variables = [@w], ...} : (tensor<f32>) -> ()
    ```
    becomes
    ```mlir
    %rate = drt.read @rate : tensor<f32>
    drt.update %rate {kernel = @sgd, variables = [@w], ...} : (tensor<f32>) -> ()
    ```
  }];
}

def GroupUpdates : Pass<"drt-group-updates", "::mlir::ModuleOp"> {
  let summary = "One launch updates a bucket's variables";
  let description = [{
    Updates by one rule (range kernels that are equal up to sizes), with the same hyper-parameters, from one bucket or from none, become a
    `drt.update_group`, an update alone too. A table in constant memory says where each member's first block, gradient, variable and slots are, by offsets from
    the bases of the arena and of the replica's block of variables; a block finds its member in it. Threads access 128 bits; the last elements of
    a variable one by one. Updates move together only across other updates of other variables, and across what computes nothing.

    Where the updates alone read the mean of a bucket, they take it: the bucket is summed, and gradients are multiplied by 1/N. Barriers have no
    work on devices, which share no memory, and are dropped. Runs behind `drt-plan-memory` with places for variables.

    ```mlir
    drt.update {kernel = @sgd_8, variables = [@a], bucket = 0 : i32, member = 0 : i64, count = 8 : i64} %rate : ...
    drt.update {kernel = @sgd_2, variables = [@b], bucket = 0 : i32, member = 1 : i64, count = 2 : i64} %rate : ...
    ```
    becomes
    ```mlir
    drt.update_group %rate {kernel = @update_group_0, variables = [[@a], [@b]], bucket = 0 : i32, members = array<i64: 0, 1>, scale = 0.5 : f64} : ...
    ```
    with `gpu.func @update_group_0(%arena: memref<..xi8>, %variables: memref<..xi8>, %rate: memref<1xf32>)` in `gpu.module @kernels`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect", "::distc::drt::DRTDialect"];
}

def VerifyStreamOrder : Pass<"drt-verify-stream-order", "::distc::drt::EntryOp"> {
  let summary = "Proves that a device's streams give what the plan's order says, or refuses the plan";
  let description = [{
    What drt-verify-order is for the plan of a CPU's threads. A replica's work runs on its compute stream in the plan's order, but for buckets: behind
    `drt.all_reduce_start` the communication stream reduces the bucket in its place, beside what follows, until a `drt.all_reduce_wait` for it or for a
    bucket that was started later. Fetches are copied at the end. So the pass follows what lies at each place of the arena, and refuses

    - work that reads or writes a place where a bucket is being reduced;
    - work that reads a gradient which was reduced in its place since, or anything whose place was written since, or never;
    - fetches of such values;
    - work that reads a variable, without a copy, behind its update, for the value from before;
    - one launch whose results lie over its operands, or that updates a variable which another of its members reads or updates.

    It changes nothing, runs last, and takes time in proportion to the plan (a search in ordered places an access). Functions without `drt.entry` are
    left alone.
  }];
}

def AccumulateInVariables : Pass<"drt-accumulate-in-variables", "::mlir::ModuleOp"> {
  let summary = "Gradients of several batches are added up in variables of a device";
  let description = [{
    Variables `accumulator_N`, which no checkpoint has and which are zero at first, hold the sums; so they are updated in groups, as all
    variables are. The operations stay without gradients: they say how many batches an update takes.

    Rows and indices of sparse gradients are joined instead: a variable has those of all batches of an update but the last, and each batch moves them
    up by one. As many batches come before an update as it has place for, so that nothing needs to be forgotten.

    ```mlir
    drt.accumulate %g {first = 0 : i32, steps = 4 : i64}                             // entry "accumulate"
    %s = drt.accumulated %g {first = 0 : i32, steps = 4 : i64, scale = 0.25 : f64}   // entry "step"
    ```
    becomes
    ```mlir
    drt.update %g {kernel = @accumulate_0, variables = [@accumulator_0], count = ...}

    %sum = drt.read @accumulator_0
    %s = linalg.generic ... (%sum + %g) * 0.25
    ...
    drt.update {kernel = @forget_1, variables = [@accumulator_0], count = ...}
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect", "::distc::drt::DRTDialect"];
}

def RowKernels : Pass<"drt-row-kernels", "::mlir::ModuleOp"> {
  let summary = "Rows by index are found, joined and sorted by kernels for devices";
  let description = [{
    Nothing is added by atomic operations: indices are sorted with their positions, by one launch that sorts tiles and further ones that merge, and what names
    one row is a segment that one thread an element of the row goes through in that order. So sums have a fixed order, and of several updates of
    a row the last one counts. A long segment is gone through in two steps, of which the first joins chunks of it.

    - `drt.scatter` becomes a launch that writes each element of the result once.
    - `drt.unique` numbers values as they occur first. Its segments serve the scatters by its `idx`.
    - `drt.sparse_update` gets its rows sorted; where they are the values of a `drt.unique`, they are distinct already. Its kernel is
      `drt-group-updates`' to write, which knows places.

    ```mlir
    %y, %idx, %count = drt.unique %x : (tensor<24xi32>) -> (tensor<24xi32>, tensor<24xi32>, tensor<24xi32>)
    %sums = drt.scatter %idx, %values {depth = 1 : i64, kind = 1 : i32} : (tensor<24xi32>, tensor<24x8xf32>) -> tensor<24x8xf32>
    ```
    becomes
    ```mlir
    %sorted = drt.launch @rows_sort_values_0(%x) : (tensor<24xi32>) -> tensor<2x24xi32>
    %first, %segments = drt.launch @rows_first_1(%sorted) : (tensor<2x24xi32>) -> (tensor<24xi32>, tensor<2x24xi32>)
    %before, %all = drt.launch @rows_count_2(%first) : (tensor<24xi32>) -> (tensor<24xi32>, tensor<1xi32>)
    %y, %idx, %count, %bounds = drt.launch @rows_unique_3(%x, %first, %segments, %before, %all) : ...
    %sums = drt.launch @rows_scatter_4(%values, %sorted, %bounds) : ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::distc::drt::DRTDialect"];
}

def RandomKernels : Pass<"drt-random-kernels", "::mlir::ModuleOp"> {
  let summary = "Random numbers are drawn by kernels for devices";
  let description = [{
    The numbers are those of runtime/random: Philox 4x32-10 in TensorFlow's groups of four words; a thread draws a group. The state lies in device memory
    (`drt.random_state`) and is moved on at the end of the entry, by one launch for all of them. With `per_replica` a thread adds the replica's part, whose
    number lies behind the state. Bounds of integers that are constant are part of the kernel.

    ```mlir
    %x = drt.random {distribution = 0 : i32, seed = 1 : i64, seed2 = 2 : i64} : () -> tensor<1000xf32>
    ```
    becomes
    ```mlir
    %s = drt.random_state {seed = 1 : i64, seed2 = 2 : i64} : () -> tensor<7xi32>
    %x = drt.launch @random_0(%s) : (tensor<7xi32>) -> tensor<1000xf32>
    ...
    drt.random_advance @random_advance_0(%s) : tensor<7xi32>
    ```
    with `gpu.func @random_0` and `gpu.func @random_advance_0` in `gpu.module @kernels`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect", "::distc::drt::DRTDialect"];
}

def ConvertDrtToLLVM : Pass<"convert-drt-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Makes LLVM functions of the entries, and the tables that describe the program";
  let description = [{
    Every entry becomes `llvm.func @drt_entry_NAME(ptr replica)`: calls of kernels and of the functions in drt.h, each between
    `drt_scope_begin` and `drt_scope_end`. Kernels are LLVM functions already, with one bare pointer a tensor, operands before results.
    `drt_the_program` and its tables become constants. They say of the plan what the module's `drt.program` does.

    In a program for devices (`drt.variable_bytes`) kernels are functions in `gpu.module @kernels` with `drt.grid` and `drt.block`, numbered in
    their order; a launch is drt_launch with the kernel's number. The module's images (`drt.images`, see `drt-make-images`) become constants.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // DISTC_PASSES_LOWER_PASSES
