"""ONNX's cases that velo refuses: their names, what velo says, and why it is so. node_test.py holds
the list true in both directions."""
import collections

# cases: a pattern of whole names; text: a pattern in the refusal; why: the reason, for the reader.
Refusal = collections.namedtuple("Refusal", "cases text why")

REFUSED = [
    Refusal("test_attention_.*qk_matmul.*|test_attention_local_window_gqa_rank4_mask",
            "no field .*qk_matmul_output",
            "attention keeps no matrix of scores or probabilities: none is in memory"),
    Refusal(r"test_attention_(?!.*qk_matmul).*softcap.*", "no field softcap;",
            "attention has no softcap, cap tanh(score / cap), between scale and mask"),
    Refusal("test_flexattention_(score|prob)_mod|test_flexattention_(causal_mask|soft_cap|rel.*)",
            "no field (score|prob)_mod", "a graph of the caller's own is no mode of attention"),
    Refusal("test_flexattention_double", "query.dtype: expected .* got float64",
            "operators compute in float32, and take no float64"),
    Refusal(r"test_cast(like)?_.*(FLOAT[48]E|INT[24]|DOUBLE).*",
            r"element type (float|u?int)|velo_cast: (dtype is|args\.x\.dtype)",
            "casts are among float32, bfloat16 and float16"),
    Refusal("test_add_u?int.*", r"args\.a\.dtype: expected", "operators add floating numbers"),
    Refusal("test_add_bcast", r"args\.b\.shape", "add has two tensors of one shape"),
    Refusal("test_sce_.*_log_prob", "no field log_prob",
            "cross_entropy keeps no [T, V] beside its logits: log_prob is logits - lse"),
    Refusal("test_nllloss_.*", "no operator 'negative_log_likelihood_loss'",
            "losses are of logits, not of probabilities' logarithms"),
    Refusal("test_logsoftmax_.*", "no operator 'log_softmax'",
            "softmax alone; what follows log_softmax is cross_entropy"),
    Refusal("test_matmul_(3d|4d|bcast|1d_3d)", r"args\.b\.ndim: expected 2",
            "a weight of matmul has two dimensions"),
    Refusal("test_gemm_(alpha|beta|all_attributes)", "no field (alpha|beta)",
            "products have no factors alpha and beta"),
    Refusal("test_swiglu_alpha", "no field alpha", "silu has no slope of its own"),
    Refusal("test_training_dropout(_default)?(_mask)?", "leaves the generator open",
            "which elements are dropped is the generator's: Philox here, numpy's in ONNX"),
    Refusal("test_gather_(1|2d_indices)", "no field axis", "embedding takes rows of a table"),
    Refusal("test_gather_negative_indices", r"args\.ids: expected indices in",
            "embedding counts rows from the first alone"),
    Refusal("test_matmulinteger", r"args\.x\.dtype: expected int8",
            "quantized products are of int8, symmetric: no uint8, no zero points of x"),
    Refusal("test_(dynamic)?quantizelinear.*", "no field y_(scale|zero_point)|element type",
            "quantize chooses its scales, symmetric, for int8 and int4"),
    Refusal("test_dequantizelinear.*", "no operator 'dequantize'|element type",
            "weights are dequantized within products alone"),
    Refusal("test_adam.*", "no field norm_coefficient",
            "AdamW decays weights apart from the gradient"),
]
