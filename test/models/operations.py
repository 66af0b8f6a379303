"""The operations that the models `ops-*` and `init-*` are made of, by family. Part of make_models.py.

A function of FAMILIES returns pairs (name, function); the function takes a tensor [batch, 3] of values in (0.15, 0.95)
and returns a tensor of which the mean over everything is taken, with the batch as its first axis.
"""
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
raw = tf.raw_ops


def flag(b):
    return tf1.cast(b, tf.float32)


class Weight:
    """What an operation without a gradient gives. It is multiplied with the operation's row, so that its value reaches
    the row's gradient; one multiplication does it for all of them."""

    def __init__(self, h, value):
        value = tf1.stop_gradient(value) if value.dtype.is_floating else value
        value = flag(value)
        self.h, self.value = h, value if value.shape[-1] == h.shape[-1] else tf1.concat([value] * h.shape[-1], 1)


def unary():
    m = tf1.math
    smooth = [
        ("Neg", m.negative), ("Abs", lambda h: m.abs(h - 0.5) + h), ("Square", m.square), ("Sqrt", m.sqrt), ("Rsqrt", m.rsqrt),
        ("Reciprocal", m.reciprocal), ("Exp", m.exp), ("Expm1", m.expm1), ("Log", m.log), ("Log1p", m.log1p),
        ("Sin", m.sin), ("Cos", m.cos), ("Tan", m.tan), ("Asin", lambda h: m.asin(0.9 * h)), ("Acos", lambda h: m.acos(0.9 * h)),
        ("Atan", m.atan), ("Sinh", m.sinh), ("Cosh", m.cosh), ("Tanh", m.tanh), ("Asinh", m.asinh),
        ("Acosh", lambda h: m.acosh(1.5 + h)), ("Atanh", lambda h: m.atanh(0.9 * h)), ("Sigmoid", m.sigmoid), ("Erf", m.erf),
        ("Erfc", m.erfc), ("Identity", tf1.identity), ("StopGradient", lambda h: h * tf1.stop_gradient(h)),
    ]
    return smooth


def activations():
    n = tf1.nn
    return [
        ("Relu", lambda h: n.relu(h - 0.5)), ("Relu6", lambda h: n.relu6(9 * h)), ("Elu", lambda h: n.elu(h - 0.5)),
        ("Selu", lambda h: n.selu(h - 0.5)), ("LeakyRelu", lambda h: n.leaky_relu(h - 0.5, 0.1)), ("Softplus", n.softplus),
        ("Softsign", n.softsign), ("Softmax", lambda h: n.softmax(h) * [1.0, 2.0, 3.0]),
        ("LogSoftmax", lambda h: n.log_softmax(h) * [1.0, 2.0, 3.0]),
        ("SoftmaxCrossEntropy", lambda h: n.softmax_cross_entropy_with_logits_v2(labels=tf1.stop_gradient(n.softmax(-h)), logits=h)),
        ("SigmoidCrossEntropy", lambda h: n.sigmoid_cross_entropy_with_logits(labels=tf1.stop_gradient(h), logits=2 * h)),
        ("BiasAdd", lambda h: n.bias_add(h, [0.1, 0.2, 0.3]) ** 2),
    ]


def special():
    m = tf1.math
    return [
        ("Lgamma", m.lgamma), ("Digamma", lambda h: h * tf1.stop_gradient(m.digamma(h))), ("Erfinv", lambda h: m.erfinv(0.9 * h)),
        ("Ndtri", lambda h: m.ndtri(0.9 * h)), ("Xlogy", lambda h: m.xlogy(h, h + 1)), ("Xdivy", lambda h: m.xdivy(h, h + 1)),
        ("Xlog1py", lambda h: tf.math.xlog1py(h, h)),
    ]


def rounding():
    m = tf1.math
    return [(name, lambda h, f=f: Weight(h, f(5 * h - 2.1))) for name, f in [
        ("Floor", m.floor), ("Ceil", m.ceil), ("Round", m.round), ("Rint", m.rint), ("Sign", m.sign)]] + [
        ("IsNan", lambda h: Weight(h, m.is_nan(m.log(h - 0.5)))), ("IsInf", lambda h: Weight(h, m.is_inf(1.0 / m.floor(2 * h)))),
        ("IsFinite", lambda h: Weight(h, m.is_finite(1.0 / m.floor(2 * h)))),
    ]


def binary():
    m = tf1.math
    c = tf1.constant([0.4, 0.5, 0.6])
    return [
        ("AddV2", lambda h: (h + c) * h), ("Add", lambda h: raw.Add(x=h, y=h) * h), ("Sub", lambda h: (c - h) * h),
        ("Mul", lambda h: h * m.square(h)), ("RealDiv", lambda h: c / (h + 1)), ("Div", lambda h: raw.Div(x=h, y=1 + m.square(h))),
        ("DivNoNan", lambda h: m.divide_no_nan(h, m.floor(2 * h))), ("MulNoNan", lambda h: tf.math.multiply_no_nan(h, m.floor(2 * h))),
        ("Maximum", lambda h: m.maximum(h, c)), ("Minimum", lambda h: m.minimum(h, c)), ("Pow", lambda h: m.pow(h, c + h)),
        ("SquaredDifference", lambda h: m.squared_difference(h, c)), ("Atan2", lambda h: m.atan2(h, h + c)),
        ("FloorDiv", lambda h: Weight(h, m.floordiv(h, c))), ("FloorMod", lambda h: m.floormod(3 * h, c)),
        ("TruncateMod", lambda h: Weight(h, raw.TruncateMod(x=tf1.stop_gradient(3 * h - 1), y=c))),
        ("AddN", lambda h: tf1.add_n([h, m.square(h), m.sin(h)])), ("ClipByValue", lambda h: tf1.clip_by_value(h, 0.35, 0.55)),
        ("BroadcastRow", lambda h: h * tf1.reduce_mean(h, axis=1, keepdims=True)),
        ("BroadcastScalar", lambda h: 2.5 - h * 0.5),
    ]


def choices():
    m = tf1.math
    c = tf1.constant([0.4, 0.5, 0.6])
    return [
        ("Less", lambda h: Weight(h, h < c)), ("LessEqual", lambda h: Weight(h, h <= c)),
        ("Greater", lambda h: Weight(h, h > c)), ("GreaterEqual", lambda h: Weight(h, h >= c)),
        ("Equal", lambda h: Weight(h, m.equal(m.floor(2 * h), 1.0))), ("NotEqual", lambda h: Weight(h, m.not_equal(m.floor(2 * h), 1.0))),
        ("ApproximateEqual", lambda h: Weight(h, raw.ApproximateEqual(x=h, y=m.square(h) + 0.1, tolerance=0.1))),
        ("SelectV2", lambda h: tf.where(h > c, m.square(h), m.sin(h))), ("Select", lambda h: tf1.where(h > c, m.exp(h), h)),
    ]


def integers():
    """Values in 3…18 as int32 and int64; they reach the loss through Cast."""
    # One constant for all, as each would be a node: families are made in the graph that they are for.
    constants = {dtype: tf1.constant([3, 5, 7], dtype) for dtype in (tf.int32, tf.int64)}

    def on(dtype, function):
        return lambda h: Weight(h, function(tf1.cast(h * 20, dtype), constants[dtype]))

    m, b = tf1.math, tf1.bitwise
    pairs = [
        ("AddV2", lambda i, c: i + c), ("Sub", lambda i, c: i - c), ("Mul", lambda i, c: i * c), ("FloorDiv", lambda i, c: (i - 9) // c),
        ("FloorMod", lambda i, c: (i - 9) % c), ("TruncateDiv", lambda i, c: tf.truncatediv(i - 9, c)),
        ("TruncateMod", lambda i, c: tf.truncatemod(i - 9, c)), ("Maximum", m.maximum), ("Minimum", m.minimum),
        ("SquaredDifference", m.squared_difference), ("Neg", lambda i, c: -i), ("Abs", lambda i, c: m.abs(i - 9)),
        ("Sign", lambda i, c: m.sign(i - 9)), ("Square", lambda i, c: m.square(i)), ("Less", lambda i, c: i < 2 * c),
        ("Equal", lambda i, c: m.equal(i % 2, c % 2)), ("Sum", lambda i, c: tf1.reduce_sum(i, axis=1, keepdims=True)),
        ("Max", lambda i, c: tf1.reduce_max(i, axis=1, keepdims=True)), ("SelectV2", lambda i, c: tf.where(i > 2 * c, i, c)),
    ]
    single = [
        ("BitwiseAnd", lambda i, c: b.bitwise_and(i, c)), ("BitwiseOr", lambda i, c: b.bitwise_or(i, c)),
        ("BitwiseXor", lambda i, c: b.bitwise_xor(i, c)), ("Invert", lambda i, c: b.invert(i)),
        ("LeftShift", lambda i, c: b.left_shift(i, c - 2)), ("RightShift", lambda i, c: b.right_shift(i, c - 2)),
        ("Pow", lambda i, c: m.pow(i // 5, c - 2)),
    ]
    return [(n, on(tf.int32, f)) for n, f in pairs + single] + [(n + "64", on(tf.int64, f)) for n, f in pairs[::4]]


def booleans():
    m = tf1.math
    return [
        ("LogicalAnd", lambda h: Weight(h, m.logical_and(h > 0.3, h < 0.6))), ("LogicalOr", lambda h: Weight(h, m.logical_or(h < 0.3, h > 0.6))),
        ("LogicalNot", lambda h: Weight(h, m.logical_not(h > 0.5))), ("LogicalXor", lambda h: Weight(h, m.logical_xor(h > 0.3, h > 0.6))),
        ("All", lambda h: Weight(h, tf1.reduce_all(h > 0.3, axis=1, keepdims=True))),
        ("Any", lambda h: Weight(h, tf1.reduce_any(h > 0.6, axis=1, keepdims=True))),
        ("CastFloat64", lambda h: tf1.cast(m.square(tf1.cast(h, tf.float64)), tf.float32)),
    ]


def reductions():
    m = tf1.math

    def over(f):
        return lambda h: f(m.square(h), axis=1)

    c = tf1.constant([1.0, 2.0, 3.0])
    return [
        ("Sum", over(tf1.reduce_sum)), ("Mean", over(tf1.reduce_mean)), ("Max", over(tf1.reduce_max)), ("Min", over(tf1.reduce_min)),
        ("EuclideanNorm", over(tf.math.reduce_euclidean_norm)), ("LogSumExp", over(tf1.reduce_logsumexp)),
        ("Variance", over(tf.math.reduce_variance)), ("KeepDims", lambda h: h / tf1.reduce_sum(h, axis=1, keepdims=True) * c),
        ("NegativeAxis", lambda h: tf1.reduce_sum(h * h, axis=-1)),
        ("TwoAxes", lambda h: tf1.reduce_sum(tf1.reshape(m.square(h), [-1, 3, 1]) * c, axis=[1, 2])),
        ("MiddleAxis", lambda h: tf1.reduce_max(tf1.reshape(m.square(h), [-1, 3, 1]) * c, axis=1)),
        ("SumOfAll", lambda h: tf1.reduce_mean(h * h, axis=[0, 1])),
    ]


def scans():
    m = tf1.math
    c = tf1.constant([1.0, 2.0, 3.0])
    return [
        ("ArgMax", lambda h: Weight(h, tf1.reshape(tf1.argmax(h, axis=1), [-1, 1]))),
        ("ArgMin", lambda h: Weight(h, tf1.reshape(tf1.argmin(h, axis=1, output_type=tf.int32), [-1, 1]))),
        ("Cumsum", lambda h: m.cumsum(h, axis=1) * c), ("CumsumReverse", lambda h: m.cumsum(h, axis=1, exclusive=True, reverse=True) * c),
    ]


def products():
    return [("Prod", lambda h: tf1.reduce_prod(h, axis=1)), ("Cumprod", lambda h: tf1.math.cumprod(h, axis=1) * [1.0, 2.0, 3.0])]


def shapes():
    c = tf1.constant([1.0, 2.0, 3.0])
    return [
        ("Reshape", lambda h: tf1.reshape(tf1.reshape(h * h, [-1, 1, 3]), [-1, 3]) * c),
        ("Transpose", lambda h: tf1.transpose(tf1.transpose(h * h) * 2.0) * c),
        ("ExpandDims", lambda h: tf1.expand_dims(h * h, 1) * c),
        ("Squeeze", lambda h: tf1.squeeze(tf1.reshape(h, [-1, 3, 1]), axis=2) * c),
        ("ZerosLike", lambda h: h * h + tf1.zeros_like(h)), ("OnesLike", lambda h: h * h + tf1.ones_like(h)),
        ("BroadcastTo", lambda h: tf1.broadcast_to(tf1.reduce_sum(h * h, axis=1, keepdims=True), tf1.shape(h)) * c),
        ("Fill", lambda h: h * h * tf1.fill([3], 2.0)),
        ("MatMulTransposed", lambda h: tf1.matmul(h, np.arange(6, dtype=np.float32).reshape(2, 3) / 3, transpose_b=True)),
        ("BatchMatMul", lambda h: tf1.matmul(tf1.reshape(h, [-1, 3, 1]), tf1.reshape(h, [-1, 1, 3])) * c),
    ]


def pieces():
    c = tf1.constant([1.0, 2.0, 3.0])
    return [
        ("Concat", lambda h: tf1.concat([h, h * h], axis=1)), ("Slice", lambda h: tf1.slice(h * h, [0, 1], [-1, 2])),
        ("StridedSlice", lambda h: (h * h)[:, ::2]), ("Pad", lambda h: tf1.pad(h * h, [[0, 0], [1, 2]])),
        ("Tile", lambda h: tf1.tile(h * h, [1, 2])), ("Pack", lambda h: tf1.stack([h, h * h], axis=1)),
        ("Unpack", lambda h: tf1.unstack(h * h, num=3, axis=1)[1]), ("Split", lambda h: tf1.split(h * h, 3, axis=1)[2]),
        ("Reverse", lambda h: tf1.reverse(h * h, axis=[1]) * c), ("OneHot", lambda h: h * h * tf1.one_hot(tf1.argmax(h, 1), 3)),
    ]


def bessel():
    """Special functions that the runtime computes; gradients are others of them."""
    s = tf.math.special
    smooth = [("I0", s.bessel_i0), ("I0e", s.bessel_i0e), ("I1", s.bessel_i1), ("I1e", s.bessel_i1e), ("J0", s.bessel_j0),
              ("J1", s.bessel_j1), ("K0", s.bessel_k0), ("K0e", s.bessel_k0e), ("K1", s.bessel_k1), ("K1e", s.bessel_k1e),
              ("Y0", s.bessel_y0), ("Y1", s.bessel_y1)]
    return [("Bessel" + name, lambda h, f=f: 0.1 * f(2 * h + 1)) for name, f in smooth] + [
        ("Dawsn", lambda h: s.dawsn(3 * h)), ("Expint", lambda h: s.expint(h + 0.2)), ("FresnelCos", lambda h: s.fresnel_cos(3 * h)),
        ("FresnelSin", lambda h: s.fresnel_sin(3 * h)), ("Spence", lambda h: s.spence(4 * h)),
        ("Polygamma", lambda h: 0.1 * tf.math.polygamma(tf.constant([1.0, 2.0, 3.0]), h + 1)),
        ("Zeta", lambda h: 0.1 * tf.math.zeta(tf.constant([1.5, 2.0, 3.0]), h + 1)),
        ("Igamma", lambda h: tf.math.igamma(h + 0.5, 2 * h)), ("Igammac", lambda h: tf.math.igammac(2 * h, h + 1)),
    ]


def rows():
    """Rows by index: what gathers, scatters and segments move, and their gradients."""
    ids = tf1.constant([2, 0, 2, 1])

    def columns(f):
        """The columns as rows, so that the batch is not what is indexed."""
        return lambda h: tf1.transpose(f(tf1.transpose(h * h)))

    s = tf.math
    return [
        ("GatherV2", columns(lambda t: tf1.gather(t, ids))), ("GatherAxis", lambda h: tf1.gather(h * h, ids, axis=1)),
        ("GatherBatch", lambda h: Weight(h, tf1.gather(h * h, tf1.cast(3 * h, tf.int32), batch_dims=1))),
        ("GatherNd", columns(lambda t: tf1.gather_nd(t, [[2], [1]]))),
        ("UnsortedSegmentSum", columns(lambda t: s.unsorted_segment_sum(t, [1, 0, 1], 2))),
        ("UnsortedSegmentMax", columns(lambda t: s.unsorted_segment_max(t, [1, 0, 1], 2))),
        ("UnsortedSegmentMin", columns(lambda t: s.unsorted_segment_min(t, [1, 0, 1], 2))),
        ("UnsortedSegmentProd", columns(lambda t: s.unsorted_segment_prod(t, [1, 0, 1], 2))),
        ("TensorScatterAdd", columns(lambda t: tf1.tensor_scatter_nd_add(t, [[0], [2]], 2 * t[:2]))),
        ("TensorScatterSub", columns(lambda t: tf1.tensor_scatter_nd_sub(t, [[0], [2]], 2 * t[:2]))),
        ("TensorScatterUpdate", columns(lambda t: tf1.tensor_scatter_nd_update(t, [[0], [2]], 2 * t[:2]))),
        ("TensorScatterMax", columns(lambda t: tf1.tensor_scatter_nd_max(t, [[0], [2]], 0.7 * t[:2]))),
        ("Unique", lambda h: Weight(h, tf1.reshape(tf1.gather(tf1.unique(tf1.reshape(tf1.cast(5 * h, tf.int32), [-1]))[0],
                                                             tf1.unique(tf1.reshape(tf1.cast(5 * h, tf.int32), [-1]))[1]), [-1, 3]))),
        ("CheckNumerics", lambda h: tf1.check_numerics(h * h, "not finite")), ("EnsureShape", lambda h: tf1.ensure_shape(h * h, [None, 3])),
        ("CumulativeLogsumexp", lambda h: Weight(h, s.cumulative_logsumexp(2 * h, axis=1))),
    ]


def quantization():
    """What is rounded as if it were quantized: ranges with and without 0 inside, whose ends get gradients, and one that is empty."""
    q = tf.quantization
    low, high = lambda h: tf1.reduce_mean(h) - 0.7, lambda h: tf1.reduce_mean(h) + 0.1
    return [
        ("FakeQuantWithMinMaxArgs", lambda h: h * q.fake_quant_with_min_max_args(h - 0.3, -0.21, 0.4)),
        ("FakeQuantNarrow", lambda h: h * q.fake_quant_with_min_max_args(h, -0.5, 0.6, num_bits=4, narrow_range=True)),
        ("FakeQuantWithMinMaxVars", lambda h: h * q.fake_quant_with_min_max_vars(h - 0.3, tf1.constant(-0.1), tf1.constant(0.3), num_bits=5)),
        ("FakeQuantAbove", lambda h: h * q.fake_quant_with_min_max_vars(h, tf1.constant(0.3), tf1.constant(0.8))),
        ("FakeQuantEmpty", lambda h: h * (1 + q.fake_quant_with_min_max_vars(h, tf1.constant(0.0), tf1.constant(0.0)))),
        ("FakeQuantWithMinMaxVarsPerChannel", lambda h: h * q.fake_quant_with_min_max_vars_per_channel(
            h - 0.4, tf1.constant([-0.1, -0.3, 0.0]), tf1.constant([0.3, 0.1, 0.0]), num_bits=6)),
        ("QuantizeAndDequantize", lambda h: h * q.quantize_and_dequantize_v2(h - 0.3, -0.3, 0.5, num_bits=5, range_given=True)),
        ("QuantizeOwnRange", lambda h: h * tf1.stop_gradient(q.quantize_and_dequantize(h - 0.5, 0, 0, num_bits=6, range_given=False))),
        ("QuantizeUnsigned", lambda h: h * q.quantize_and_dequantize(
            h, 0.0, 0.8, signed_input=False, num_bits=4, range_given=True, round_mode="HALF_UP")),
        ("QuantizeNarrowChannels", lambda h: h * tf1.stop_gradient(raw.QuantizeAndDequantizeV2(
            input=h - 0.5, input_min=[0.0] * 3, input_max=[0.0] * 3, range_given=False, narrow_range=True, axis=1))),
        ("QuantizeV3", lambda h: h * tf1.stop_gradient(raw.QuantizeAndDequantizeV3(
            input=h - 0.4, input_min=-0.4, input_max=0.4, num_bits=tf1.constant(5)))),
        ("FakeQuantVarsGradient", lambda h: h * q.fake_quant_with_min_max_vars(tf1.stop_gradient(h - 0.4), low(h), high(h), num_bits=3)),
    ]


def colors():
    """Images of a few points in other colors, some of them gray; and images made smaller and larger by areas."""
    i = tf.image
    points = lambda h: tf1.stack([h, h - 0.1, tf1.reverse(h, [1]) * 0.9, h * h], 1)[:, :, None]
    grays = lambda h: tf1.stack([h, tf1.broadcast_to(h[:, :1], tf1.shape(h)), tf1.zeros_like(h)], 1)[:, :, None]
    summed = lambda x: tf1.reduce_sum(x, [1, 2])
    still = lambda change, image=points: lambda h: h * tf1.stop_gradient(summed(change(image(h))))
    columns = lambda h: tf1.stack([h, h * h, tf1.sqrt(h)], 1)[..., None]

    def area(size, **how):
        return lambda h: h * tf1.stop_gradient(summed(tf1.image.resize_area(columns(h), size, **how)))
    return [
        ("RGBToHSV", lambda h: summed(i.rgb_to_hsv(points(h)))), ("RGBToHSVOfGrays", still(i.rgb_to_hsv, grays)),
        ("HSVToRGB", still(i.hsv_to_rgb)),
        ("AdjustHue", still(lambda x: i.adjust_hue(x, 0.3))), ("AdjustHueBack", still(lambda x: i.adjust_hue(x, -0.7))),
        ("AdjustHueOfGrays", still(lambda x: i.adjust_hue(x, 0.2), grays)),
        ("AdjustSaturation", still(lambda x: i.adjust_saturation(x, 0.4), grays)), ("AdjustSaturationFull", still(lambda x: i.adjust_saturation(x, 3.0))),
        ("AdjustContrast", still(lambda x: i.adjust_contrast(x, 1.5))),
        ("ResizeArea", area([1, 3])), ("ResizeAreaUneven", area([2, 2])), ("ResizeAreaLarger", area([5, 4], align_corners=True)),
    ]


FAMILIES = {
    "unary": unary, "activations": activations, "special": special, "rounding": rounding, "binary": binary,
    "choices": choices, "integers": integers, "booleans": booleans, "reductions": reductions, "scans": scans,
    "products": products, "shapes": shapes, "pieces": pieces,
    "bessel": bessel, "rows": rows, "quantization": quantization, "colors": colors,
}

# ---- initializers ----------------------------------------------------------------------------
# Pairs (name of the variable, function that makes its initial value). Shapes are odd: TensorFlow's kernels give each
# group of four values a counter, and what is left of a group is lost.


def stateful_random():
    r = tf1.random
    return [
        ("uniform", lambda: r.uniform([5, 7], -1.0, 2.0, seed=3)), ("uniform_scalar", lambda: r.uniform([], seed=4)),
        ("uniform_long", lambda: r.uniform([259], seed=5)), ("uniform_f64", lambda: r.uniform([3, 5], dtype=tf.float64, seed=6)),
        ("uniform_same_seed", lambda: r.uniform([5, 7], -1.0, 2.0, seed=3)), ("uniform_graph_seed", lambda: r.uniform([9])),
        ("uniform_i32", lambda: r.uniform([17], -5, 1000, dtype=tf.int32, seed=7)),
        ("uniform_i64", lambda: r.uniform([17], -5, 10**12, dtype=tf.int64, seed=8)),
        ("normal", lambda: r.normal([5, 7], 1.0, 0.5, seed=9)), ("normal_long", lambda: r.normal([259], seed=10)),
        ("normal_f64", lambda: r.normal([3, 5], dtype=tf.float64, seed=11)), ("normal_graph_seed", lambda: r.normal([9])),
        ("truncated", lambda: r.truncated_normal([5, 7], stddev=0.1, seed=12)), ("truncated_long", lambda: r.truncated_normal([259], seed=13)),
        ("truncated_f64", lambda: r.truncated_normal([3, 5], dtype=tf.float64, seed=14)),
        ("large_seed", lambda: r.uniform([6], seed=2**31 - 1)),
    ]


def stateless_random():
    def seed(a, b):
        return tf1.constant([a, b], tf.int64)

    return [
        ("uniform", lambda: raw.StatelessRandomUniform(shape=[5, 7], seed=seed(3, 4))),
        ("uniform_f64", lambda: raw.StatelessRandomUniform(shape=[11], seed=seed(-3, 4), dtype=tf.float64)),
        ("uniform_i32", lambda: raw.StatelessRandomUniformInt(shape=[17], seed=seed(5, 6), minval=-5, maxval=1000)),
        ("normal", lambda: raw.StatelessRandomNormal(shape=[5, 7], seed=seed(7, 2**40))),
        ("normal_f64", lambda: raw.StatelessRandomNormal(shape=[11], seed=seed(7, 8), dtype=tf.float64)),
        ("truncated", lambda: raw.StatelessTruncatedNormal(shape=[5, 7], seed=seed(9, 10))),
        ("truncated_long", lambda: raw.StatelessTruncatedNormal(shape=[259], seed=seed(9, 11))),
        ("seed_i32", lambda: raw.StatelessRandomUniform(shape=[9], seed=tf1.constant([1, 2], tf.int32))),
    ]


def keras_random():
    """TensorFlow 2's functions and the initializers of Keras: keys and counters that are operations of their own."""
    r = tf.random
    glorot = tf.initializers
    return [
        ("uniform", lambda: r.stateless_uniform([5, 7], [3, 4], -1.0, 2.0)), ("normal", lambda: r.stateless_normal([5, 7], [5, 6])),
        ("truncated", lambda: r.stateless_truncated_normal([5, 7], [7, 8])),
        ("uniform_i32", lambda: r.stateless_uniform([17], [9, 10], -5, 1000, tf.int32)),
        ("glorot_uniform", lambda: glorot.GlorotUniform(seed=1)([6, 5])), ("he_normal", lambda: glorot.HeNormal(seed=2)([6, 5])),
        ("orthogonal_free", lambda: glorot.VarianceScaling(seed=3, distribution="untruncated_normal")([6, 5])),
    ]
