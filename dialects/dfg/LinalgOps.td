//===- LinalgOps.td - Sorting, linear algebra, candidate sampling, checks: routines of the runtime ----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DFG_LINALG_OPS
#define DFG_LINALG_OPS

include "dialects/dfg/DfgOpBase.td"

// ---- Sorting ----------------------------------------------------------------------------------
def DFG_TopKOp : DFG_Pure<"top_k", "\"TopK\""> {
  let summary = "The k largest elements of each row, the first of equal ones first, and where they are";
  let arguments = (ins DFG_Tensor:$input, I64Attr:$k, DefaultValuedAttr<BoolAttr, "true">:$sorted);
  let results = (outs DFG_Tensor:$values, DFG_Tensor:$indices);
  let types = "T:0 =int32:r1";
  let shape = "topK";
}
def DFG_TopKV2Op : DFG_Pure<"top_k_v2", "\"TopKV2\""> {
  let parameters = "operand == 1";
  let arguments = (ins DFG_Tensor:$input, DFG_Tensor:$k, DefaultValuedAttr<BoolAttr, "true">:$sorted);
  let results = (outs DFG_Tensor:$values, DFG_Tensor:$indices);
  let types = "T:0 Tk:1 index_type:r1";
  let shape = "topK";
}

// ---- Matrices: the last two axes ------------------------------------------------------------------
class DFG_Factors<string mnemonic, string tensorflow, dag operands, dag factors, string shapeFunction> : DFG_Pure<mnemonic, tensorflow, [DFG_OfMatrices]> {
  let arguments = operands;
  let results = factors;
  let types = "T:0";
  let shape = shapeFunction;
}
class DFG_Matrices<string mnemonic, string tensorflow, dag operands, string shapeFunction>
    : DFG_Factors<mnemonic, tensorflow, operands, (outs DFG_Tensor:$result), shapeFunction>;
defvar adjointMatrix = (ins DefaultValuedAttr<BoolAttr, "false">:$adjoint);
def DFG_CholeskyOp : DFG_Matrices<"cholesky", "\"Cholesky\"", (ins DFG_Tensor:$input), "squareMatrices">;
def DFG_MatrixInverseOp : DFG_Matrices<"matrix_inverse", "\"MatrixInverse\"", !con((ins DFG_Tensor:$input), adjointMatrix), "squareMatrices">;
def DFG_MatrixDeterminantOp : DFG_Matrices<"matrix_determinant", "\"MatrixDeterminant\"", (ins DFG_Tensor:$input), "determinant">;
def DFG_MatrixSolveOp : DFG_Matrices<"matrix_solve", "\"MatrixSolve\"", !con((ins DFG_Tensor:$matrix, DFG_Tensor:$rhs), adjointMatrix), "solve">;
def DFG_MatrixTriangularSolveOp : DFG_Matrices<"matrix_triangular_solve", "\"MatrixTriangularSolve\"",
    !con((ins DFG_Tensor:$matrix, DFG_Tensor:$rhs), (ins DefaultValuedAttr<BoolAttr, "true">:$lower), adjointMatrix), "solve">;
def DFG_TridiagonalSolveOp : DFG_Matrices<"tridiagonal_solve", "\"TridiagonalSolve\"",
    (ins DFG_Tensor:$diagonals, DFG_Tensor:$rhs, DefaultValuedAttr<BoolAttr, "true">:$partial_pivoting,
         DefaultValuedAttr<BoolAttr, "false">:$perturb_singular), "tridiagonalSolve"> {
  let summary = "Systems whose matrices have three diagonals: those above, on and below, a row each";
}
def DFG_MatrixSolveLsOp : DFG_Matrices<"matrix_solve_ls", "\"MatrixSolveLs\"",
    (ins DFG_Tensor:$matrix, DFG_Tensor:$rhs, DFG_Tensor:$l2_regularizer, DefaultValuedAttr<BoolAttr, "true">:$fast), "solveLs">;
def DFG_MatrixSquareRootOp : DFG_Matrices<"matrix_square_root", "\"MatrixSquareRoot\"", (ins DFG_Tensor:$input), "squareMatrices">;
def DFG_LogMatrixDeterminantOp : DFG_Factors<"log_matrix_determinant", "\"LogMatrixDeterminant\"", (ins DFG_Tensor:$input),
    (outs DFG_Tensor:$sign, DFG_Tensor:$log_abs_determinant), "determinant">;
defvar fullMatrices = (ins DefaultValuedAttr<BoolAttr, "false">:$full_matrices);
def DFG_QrOp : DFG_Factors<"qr", "\"Qr\"", !con((ins DFG_Tensor:$input), fullMatrices), (outs DFG_Tensor:$q, DFG_Tensor:$r), "qr">;
def DFG_SelfAdjointEigOp : DFG_Factors<"self_adjoint_eig", "\"SelfAdjointEigV2\"",
    (ins DFG_Tensor:$input, DefaultValuedAttr<BoolAttr, "true">:$compute_v), (outs DFG_Tensor:$e, DFG_Tensor:$v), "selfAdjointEig"> {
  let summary = "Eigenvalues, ascending, and eigenvectors of the symmetric matrices whose lower triangles are given; without compute_v, no vectors";
}
def DFG_SvdOp : DFG_Factors<"svd", "\"Svd\"", !con((ins DFG_Tensor:$input, DefaultValuedAttr<BoolAttr, "true">:$compute_uv), fullMatrices),
    (outs DFG_Tensor:$s, DFG_Tensor:$u, DFG_Tensor:$v), "svd"> {
  let summary = "Singular values, descending, and vectors, a column each; without compute_uv, no vectors";
}
def DFG_LuOp : DFG_Factors<"lu", "\"Lu\"", (ins DFG_Tensor:$input), (outs DFG_Tensor:$lu, DFG_Tensor:$p), "lu"> {
  let summary = "Both triangles in one matrix, and the row of the input that each row of their product is";
  let types = "T:0 output_idx_type:r1";
}
// What LAPACK has, and TensorFlow does not.
def DFG_LuPivotsOp : DFG_Factors<"lu_pivots", "\"\"", (ins DFG_Tensor:$input), (outs DFG_Tensor:$lu, DFG_Tensor:$pivots), "lu"> {
  let types = "T:0 =int32:r1";
  let summary = "As LAPACK's getrf: both triangles, and of each step the row, counted from 1, that it exchanged with its own";
}
def DFG_HouseholderFactorsOp : DFG_Factors<"householder_factors", "\"\"", (ins DFG_Tensor:$input), (outs DFG_Tensor:$factors, DFG_Tensor:$taus), "householderFactors"> {
  let summary = "As LAPACK's geqrf: r, below its diagonal the reflections whose product is q, and their scales";
}
def DFG_HouseholderProductOp : DFG_Matrices<"householder_product", "\"\"", (ins DFG_Tensor:$factors, DFG_Tensor:$taus), "householderProduct"> {
  let summary = "As LAPACK's orgqr: the first columns of the product of reflections";
}

// ---- Boxes ---------------------------------------------------------------------------------------------
class DFG_NonMaxSuppression<string mnemonic, string tensorflow, dag operands, dag more, string attributes>
    : DFG_Pure<mnemonic, tensorflow, [DFG_FillsUp]> {
  let arguments = operands;
  let results = !con((outs DFG_Tensor:$selected_indices), more);
  let types = attributes;
  let shape = "nonMaxSuppression";
}
defvar boxesAndScores = (ins DFG_Tensor:$boxes, DFG_Tensor:$scores, DFG_Tensor:$max_output_size);
defvar boxesAndThresholds = !con(boxesAndScores, (ins DFG_Tensor:$iou_threshold, DFG_Tensor:$score_threshold));
defvar padsBoxes = (ins DefaultValuedAttr<BoolAttr, "false">:$pad_to_max_output_size);
def DFG_NonMaxSuppressionOp : DFG_NonMaxSuppression<"non_max_suppression", "\"NonMaxSuppression\"",
    !con(boxesAndScores, (ins DefaultValuedAttr<F32Attr, "0.5f">:$iou_threshold)), (outs), "=int32:r0">;
def DFG_NonMaxSuppressionV2Op : DFG_NonMaxSuppression<"non_max_suppression_v2", "\"NonMaxSuppressionV2\"",
    !con(boxesAndScores, (ins DFG_Tensor:$iou_threshold)), (outs), "T:0 T_threshold:3 =int32:r0">;
def DFG_NonMaxSuppressionV3Op : DFG_NonMaxSuppression<"non_max_suppression_v3", "\"NonMaxSuppressionV3\"", boxesAndThresholds, (outs),
    "T:0 T_threshold:3 =int32:r0">;
def DFG_NonMaxSuppressionV4Op : DFG_NonMaxSuppression<"non_max_suppression_v4", "\"NonMaxSuppressionV4\"", !con(boxesAndThresholds, padsBoxes),
    (outs DFG_Tensor:$valid_outputs), "T:0 T_threshold:3 =int32:r0 =int32:r1">;
def DFG_NonMaxSuppressionV5Op : DFG_NonMaxSuppression<"non_max_suppression_v5", "\"NonMaxSuppressionV5\"",
    !con(boxesAndThresholds, (ins DFG_Tensor:$soft_nms_sigma), padsBoxes),
    (outs DFG_Tensor:$selected_scores, DFG_Tensor:$valid_outputs), "T:0 =int32:r0 =int32:r2">;
def DFG_NonMaxSuppressionWithOverlapsOp : DFG_NonMaxSuppression<"non_max_suppression_with_overlaps", "\"NonMaxSuppressionWithOverlaps\"",
    (ins DFG_Tensor:$overlaps, DFG_Tensor:$scores, DFG_Tensor:$max_output_size, DFG_Tensor:$overlap_threshold, DFG_Tensor:$score_threshold),
    (outs), "=int32:r0">;

def DFG_CombinedNonMaxSuppressionOp : DFG_Pure<"combined_non_max_suppression", "\"CombinedNonMaxSuppression\""> {
  let summary = "The best boxes of each example, selected a class at a time";
  let arguments = (ins DFG_Tensor:$boxes, DFG_Tensor:$scores, DFG_Tensor:$max_output_size_per_class, DFG_Tensor:$max_total_size,
                       DFG_Tensor:$iou_threshold, DFG_Tensor:$score_threshold, DefaultValuedAttr<BoolAttr, "false">:$pad_per_class,
                       DefaultValuedAttr<BoolAttr, "true">:$clip_boxes);
  let results = (outs DFG_Tensor:$nmsed_boxes, DFG_Tensor:$nmsed_scores, DFG_Tensor:$nmsed_classes, DFG_Tensor:$valid_detections);
  let types = "=float32:r0 =float32:r1 =float32:r2 =int32:r3";
  let parameters = "operand == 2 || operand == 3";
  let shape = "combinedNonMaxSuppression";
}

// ---- Sequences -----------------------------------------------------------------------------------------
def DFG_CtcLossRowsOp : DFG_Pure<"ctc_loss_rows", "\"\""> {
  let summary = "Connectionist temporal classification, an example a row; no operation of TensorFlow";
  let description = [{
    `inputs`: [example, step, class], logits, of which the last class is the blank; `labels`: [example, at most], int32, behind an example's last one
    -1; `lengths`: steps of each example, int32. Gives each example's loss and its gradient with respect to the inputs. Graves et al., Connectionist
    temporal classification, 2006.
  }];
  let arguments = (ins DFG_Tensor:$inputs, DFG_Tensor:$labels, DFG_Tensor:$lengths, BoolAttr:$preprocess_collapse_repeated,
                       BoolAttr:$ctc_merge_repeated, BoolAttr:$ignore_longer_outputs_than_inputs);
  let results = (outs DFG_Tensor:$loss, DFG_Tensor:$gradient);
  let types = "T:0";
  let shape = "ctcLossRows";
}

def DFG_CTCGreedyDecoderOp : DFG_Pure<"ctc_greedy_decoder", "\"CTCGreedyDecoder\"", [DFG_FillsUp]> {
  let summary = "The best class of each step, blanks left out: a sparse tensor of as many labels as the data say, and what the path's scores add up to";
  let arguments = (ins DFG_Tensor:$inputs, DFG_Tensor:$sequence_length, DefaultValuedAttr<BoolAttr, "false">:$merge_repeated,
                       DefaultValuedAttr<I64Attr, "-1">:$blank_index);
  let results = (outs DFG_Tensor:$decoded_indices, DFG_Tensor:$decoded_values, DFG_Tensor:$decoded_shape, DFG_Tensor:$log_probability);
  let types = "T:0 =int64:r0 =int64:r1 =int64:r2";
  let shape = "ctcGreedyDecoder";
}
def DFG_EditDistanceOp : DFG_Pure<"edit_distance", "\"EditDistance\"", [DFG_OfSparseTensors]> {
  let summary = "How many labels must be inserted, deleted or replaced (Levenshtein) along the last axis of two sparse tensors";
  let arguments = (ins DFG_Tensor:$hypothesis_indices, DFG_Tensor:$hypothesis_values, DFG_Tensor:$hypothesis_shape, DFG_Tensor:$truth_indices,
                       DFG_Tensor:$truth_values, DFG_Tensor:$truth_shape, DefaultValuedAttr<BoolAttr, "true">:$normalize);
  let results = (outs DFG_Tensor:$output);
  let types = "T:1 =float32:r0";
  let shape = "editDistance";
}
def DFG_IsotonicRegressionOp : DFG_Pure<"isotonic_regression", "\"IsotonicRegression\""> {
  let summary = "The nearest row of numbers that do not increase, by squares, and which of its pieces each is of (pool adjacent violators, Kruskal, 1964)";
  let arguments = (ins DFG_Tensor:$input);
  let results = (outs DFG_Tensor:$output, DFG_Tensor:$segments);
  let types = "T:0 output_dtype:r0 =int32:r1";
  let shape = "isotonicRegression";
}

// ---- Rows of sparse tensors, and orders: no operations of TensorFlow ----------------------------------------
def DFG_SparseBlockOp : DFG_Pure<"sparse_block", "\"\"", [DFG_FillsUp, DFG_OfSparseTensors]> {
  let summary = "Which rows of `places` lie in the block [start, start + size), in order, and where in it; behind the last of them -1";
  let arguments = (ins DFG_Tensor:$places, DFG_Tensor:$start, DFG_Tensor:$size);
  let results = (outs DFG_Tensor:$rows, DFG_Tensor:$places_in_block);
  let types = "=int64:r0 =int64:r1";
  let shape = "sparseBlock";
}
def DFG_SparseBlockRowsOp : DFG_Pure<"sparse_block_rows", "\"\"", [DFG_OfSparseTensors]> {
  let summary = "Which row of `places_in_block` each row of `places` became (dfg.sparse_block); of those outside -1";
  let arguments = (ins DFG_Tensor:$places, DFG_Tensor:$start, DFG_Tensor:$places_in_block);
  let results = (outs DFG_Tensor:$rows);
  let types = "=int64:r0";
  let shape = "sparseBlockRows";
}
def DFG_ShuffledRowsOp : DFG_Pure<"shuffled_rows", "\"\""> {
  let summary = "0, 1, ... in the order that random words, one a row, bring them into: TensorFlow's of RandomShuffle";
  let arguments = (ins DFG_Tensor:$words);
  let results = (outs DFG_Tensor:$result);
  let types = "=int32:r0";
  let shape = "same";
}

// ---- Pools of windows that are drawn: no operations of TensorFlow ---------------------------------------------
def DFG_FractionalSequencesOp : DFG_Node<"fractional_sequences", "\"\"", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Where the windows of a fractional pool begin, and behind the last the size, for rows and columns";
  let description = [{
    `sizes`: rows and columns of the images, then of the result. All replicas draw the same.
  }];
  let arguments = (ins I64ArrayAttr:$sizes, BoolAttr:$pseudo_random, BoolAttr:$deterministic, I64Attr:$seed, I64Attr:$seed2);
  let results = (outs DFG_Tensor:$rows, DFG_Tensor:$columns);
  let types = "=int64:r0 =int64:r1";
  let shape = "fractionalSequences";
}
class DFG_FractionalWindows<string mnemonic, dag operands, dag attributes> : DFG_Pure<mnemonic, "\"\""> {
  let arguments = !con(operands, (ins DFG_Tensor:$rows, DFG_Tensor:$columns), attributes, (ins BoolAttr:$overlapping));
  let results = (outs DFG_Tensor:$result);
  let types = "T:0";
  let shape = "fractionalWindows";
}
def DFG_FractionalMaxOp : DFG_FractionalWindows<"fractional_max", (ins DFG_Tensor:$images), (ins)>;
def DFG_FractionalAvgOp : DFG_FractionalWindows<"fractional_avg", (ins DFG_Tensor:$images), (ins)> { let linearity = "Joint"; }
// `sizes`: rows and columns of the images.
def DFG_FractionalAvgGradOp : DFG_FractionalWindows<"fractional_avg_grad", (ins DFG_Tensor:$gradient), (ins I64ArrayAttr:$sizes)> { let linearity = "Joint"; }
def DFG_FractionalMaxPoolGradOp : DFG_Pure<"fractional_max_pool_grad", "\"FractionalMaxPoolGrad\""> {
  let arguments = (ins DFG_Tensor:$orig_input, DFG_Tensor:$orig_output, DFG_Tensor:$out_backprop, DFG_Tensor:$row_pooling_sequence,
                       DFG_Tensor:$col_pooling_sequence, DefaultValuedAttr<BoolAttr, "false">:$overlapping);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0";
  let shape = "fractionalMaxPoolGrad";
  let linearity = "Last";
}

// ---- Candidate sampling (Jean et al., On using very large target vocabulary, 2015) --------------------
class DFG_CandidateSampler<string mnemonic, string tensorflow> : DFG_Node<mnemonic, tensorflow, [MemoryEffects<[MemRead, MemWrite]>]> {
  let arguments = (ins DFG_Tensor:$true_classes, I64Attr:$num_true, I64Attr:$num_sampled, BoolAttr:$unique, I64Attr:$range_max,
                       DefaultValuedAttr<I64Attr, "0">:$seed, DefaultValuedAttr<I64Attr, "0">:$seed2);
  let results = (outs DFG_Tensor:$sampled_candidates, DFG_Tensor:$true_expected_count, DFG_Tensor:$sampled_expected_count);
  let types = "=int64:r0 =float32:r1 =float32:r2";
  let shape = "candidates";
}
def DFG_LogUniformCandidateSamplerOp : DFG_CandidateSampler<"log_uniform_candidate_sampler", "\"LogUniformCandidateSampler\"">;
def DFG_UniformCandidateSamplerOp : DFG_CandidateSampler<"uniform_candidate_sampler", "\"UniformCandidateSampler\"">;
def DFG_FixedUnigramCandidateSamplerOp : DFG_CandidateSampler<"fixed_unigram_candidate_sampler", "\"FixedUnigramCandidateSampler\""> {
  let summary = "Classes by weights that the graph has";
  let arguments = (ins DFG_Tensor:$true_classes, I64Attr:$num_true, I64Attr:$num_sampled, BoolAttr:$unique, I64Attr:$range_max,
                       DefaultValuedAttr<StrAttr, "\"\"">:$vocab_file, DefaultValuedAttr<F32Attr, "1.0f">:$distortion,
                       DefaultValuedAttr<I64Attr, "0">:$num_reserved_ids, DefaultValuedAttr<I64Attr, "1">:$num_shards,
                       DefaultValuedAttr<I64Attr, "0">:$shard, DefaultValuedAttr<ArrayAttr, "{}">:$unigrams,
                       DefaultValuedAttr<I64Attr, "0">:$seed, DefaultValuedAttr<I64Attr, "0">:$seed2);
}
def DFG_ComputeAccidentalHitsOp : DFG_Pure<"compute_accidental_hits", "\"ComputeAccidentalHits\"", [DFG_FillsUp]> {
  let summary = "Where candidates are true classes: rows, positions of candidates, and weights of -FLT_MAX";
  let arguments = (ins DFG_Tensor:$true_classes, DFG_Tensor:$sampled_candidates, I64Attr:$num_true, DefaultValuedAttr<I64Attr, "0">:$seed,
                       DefaultValuedAttr<I64Attr, "0">:$seed2);
  let results = (outs DFG_Tensor:$indices, DFG_Tensor:$ids, DFG_Tensor:$weights);
  let types = "=int32:r0 =int64:r1 =float32:r2";
  let shape = "accidentalHits";
}

// ---- What a graph says of itself while it runs -----------------------------------------------------------
def DFG_AssertOp : DFG_Node<"assert", "\"Assert\"", [MemoryEffects<[MemRead, MemWrite]>, DFG_Reports]> {
  let created = 1;
  let summary = "Ends the program with the values in `data` where the condition does not hold";
  let arguments = (ins DFG_Tensor:$condition, Variadic<DFG_Tensor>:$data, DefaultValuedAttr<I64Attr, "3">:$summarize);
  let shape = "nothing";
}
def DFG_PrintOp : DFG_Node<"print", "\"Print\"", [MemoryEffects<[MemRead, MemWrite]>, DFG_Reports]> {
  let summary = "The input; writes the message and the values in `data` to stderr";
  let arguments = (ins DFG_Tensor:$input, Variadic<DFG_Tensor>:$data, DefaultValuedAttr<StrAttr, "\"\"">:$message,
                       DefaultValuedAttr<I64Attr, "-1">:$first_n, DefaultValuedAttr<I64Attr, "3">:$summarize);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0";
  let shape = "same";
  let linearity = "First";
}
def DFG_PrintV2Op : DFG_Node<"print_v2", "\"PrintV2\"", [MemoryEffects<[MemRead, MemWrite]>, DFG_Reports]> {
  let arguments = (ins DFG_Tensor:$input);
  let shape = "nothing";
}
def DFG_StringFormatOp : DFG_Pure<"string_format", "\"StringFormat\""> {
  let summary = "A text with tensors' elements where the template has the placeholder; only printed";
  // `template` is no name in C++; it is kept among the attributes that are not modelled.
  let arguments = (ins Variadic<DFG_Tensor>:$inputs, DefaultValuedAttr<StrAttr, "\"%s\"">:$placeholder, DefaultValuedAttr<I64Attr, "3">:$summarize);
  let results = (outs DFG_Tensor:$result);
  let types = "=string:r0";
  let shape = "scalar";
}
#endif // DFG_LINALG_OPS
