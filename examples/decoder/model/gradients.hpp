// The backward passes of norms and of the embedding, which add to gradients that are f32 or bf16.
//
// The operators write these gradients in f32 alone. To a bf16 gradient theirs is added from a
// workspace of its size, with one rounding.
#pragma once

#include "examples/decoder/model/activations.hpp"

namespace decoder {

// Turns `through` [rows, width] from the gradient of the norm's output into that of its input
// `x`, and adds the gain's. `rstd` is that of the forward pass.
void norm_backward(const pass& now, const velo::tensor_view& x, const velo::tensor_view& gain,
                   const buffer& rstd, const velo::tensor_view& through,
                   const velo::tensor_view& gain_gradient);

// Adds the rows of `dy` [rows, width] to those rows of the table's gradient that `ids` name. The
// table has rows of the vocabulary, `vocab` in all, from `vocab_begin` on.
void embedding_backward(const pass& now, const velo::tensor_view& ids, const velo::tensor_view& dy,
                        const velo::tensor_view& table_gradient, std::int64_t vocab_begin,
                        std::int64_t vocab);

}  // namespace decoder
