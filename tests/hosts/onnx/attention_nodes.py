"""ONNX's Attention and FlexAttention as calls of velo.

A query's place among the keys is its own index plus an offset: the length of the past, or what a
sequence of a padded cache holds before its queries. In velo that is the sparse mode `full` with
pre_tokens and next_tokens; over a cache without a mask of its own it is `cached_attention`. A mask
of True and False is atten_mask, one of numbers is pse. Past keys and new ones are concatenated
here, as by the caller of velo, who owns the cache.
"""
import torch
from torch.nn.functional import pad

from velo_call import run

DOUBLE = 11  # of TensorProto.DataType
ALL = 2**31 - 1


def flex_attention(attributes, query, key, value):
    return [
        run("fusion_attention",
            query=query,
            key=key,
            value=value,
            layout="bnsd",
            scale=scale_of(attributes, query.shape[-1]),
            score_mod=attributes.get("score_mod"),
            prob_mod=attributes.get("prob_mod"))["attention_out"]
    ]


def scale_of(attributes, width):
    return attributes.get("scale", width**-0.5)


def lacking(attributes):
    """Attributes for which velo has no field, as fields of ONNX's names."""
    precise = attributes.get("softmax_precision") == DOUBLE  # velo's is float32, whatever the type
    return {
        "softcap": attributes.get("softcap") or None,
        "qk_matmul_output": attributes["outputs"] > 3 or None,
        "softmax_precision": "float64" if precise else None
    }


def attention(attributes, query, key, value, mask=None, past_key=None, past_value=None,
              lengths=None):
    flat = query.dim() == 3
    if flat and past_key is None and lengths is None:
        return [flat_attention(attributes, query, key, value, mask)]
    if flat:
        heads = attributes["q_num_heads"], *2 * (attributes["kv_num_heads"],)
        query, key, value = (t.unflatten(-1, (n, -1)).transpose(1, 2)
                             for t, n in zip((query, key, value), heads))
    offset = 0
    if past_key is not None:
        offset = past_key.shape[2]
        key, value = torch.cat((past_key, key), 2), torch.cat((past_value, value), 2)
    if lengths is None:
        out = head_attention(attributes, query, key, value, mask, offset)
    elif mask is None and attributes.get("is_causal"):
        out = over_cache(attributes, query, key, value, lengths)
    else:
        out = by_sequence(attributes, query, key, value, mask, lengths)
    return [out.transpose(1, 2).flatten(2) if flat else out]


def flat_attention(attributes, query, key, value, mask):
    """[B, S, N D] as it is."""
    heads = attributes["q_num_heads"]
    return run("fusion_attention",
               query=query,
               key=key,
               value=value,
               layout="bsh",
               head_num=heads,
               scale=scale_of(attributes, query.shape[-1] // heads),
               **masks(mask, query.shape[1], key.shape[1]),
               **visible(attributes, 0),
               **lacking(attributes))["attention_out"]


def head_attention(attributes, query, key, value, mask, offset):
    return run("fusion_attention",
               query=query,
               key=key,
               value=value,
               layout="bnsd",
               scale=scale_of(attributes, query.shape[-1]),
               **masks(mask, query.shape[2], key.shape[2]),
               **visible(attributes, offset),
               **lacking(attributes))["attention_out"]


def by_sequence(attributes, query, key, value, mask, lengths):
    """A call for each sequence, on the keys that it holds."""
    whole = mask
    outs = []
    for b, length in enumerate(lengths.tolist()):
        if mask is not None and mask.dim() == 4 and mask.shape[0] > 1:
            whole = mask[b:b + 1]
        own = whole if whole is None else whole[..., :length]
        outs.append(
            head_attention(attributes, query[b:b + 1], key[b:b + 1, :, :length],
                           value[b:b + 1, :, :length], own, length - query.shape[2]))
    return torch.cat(outs)


def over_cache(attributes, query, key, value, lengths):
    left = attributes.get("left_window_size", -1)
    out = run("cached_attention",
              query=query.transpose(1, 2),
              key=key.transpose(1, 2),
              value=value.transpose(1, 2),
              cache_seqlens=lengths.to(torch.int32),
              scale=scale_of(attributes, query.shape[-1]),
              pre_tokens=left if left >= 0 else None,
              **lacking(attributes))["attention_out"]
    return out.transpose(1, 2)


def visible(attributes, offset):
    """Which keys a query sees, by their distance from its own index."""
    left, right = attributes.get("left_window_size", -1), attributes.get("right_window_size", -1)
    after = right if right >= 0 else ALL - offset
    if attributes.get("is_causal"):
        after = min(after, 0)
    return {"pre_tokens": left - offset if left >= 0 else ALL, "next_tokens": after + offset}


def masks(mask, rows, columns):
    """ONNX's mask, of up to four dimensions, over [B or 1, N or 1, Sq, Skv]; keys beyond it are
    hidden."""
    if mask is None:
        return {}
    kept = mask.dtype == torch.bool
    mask = pad(mask, (0, columns - mask.shape[-1]), value=False if kept else -torch.inf)
    mask = mask.reshape((1,) * (4 - mask.dim()) + tuple(mask.shape))
    if not kept:
        return {"pse": mask, "pse_type": "added_after_scale"}
    return {"atten_mask": (~mask).expand(-1, -1, rows, -1).contiguous()}
