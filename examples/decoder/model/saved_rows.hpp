// The input of a recomputed layer between its passes, of which each tensor rank may keep its rows
// alone (distributed saved activations).
//
// Without sequence parallelism all tensor ranks hold the same input. Cost: a copy of the rank's
// rows, and in the backward pass a gather of all.
// Source: Megatron-LM's --distribute-saved-activations.
#pragma once

#include <cstring>
#include <utility>

#include "examples/decoder/model/activations.hpp"

namespace decoder {

// Replaces the rows of all ranks, [tokens, width], by this rank's. A borrowed buffer stays, and so
// does a single row, of which the first rank's part is the whole: all ranks must decide alike.
inline void keep_own_rows(const pass& now, buffer& input, std::int64_t row_bytes) {
  const tensor_parallel& tensor = now.parallel.tensor;
  if (!tensor.shares_saved() || input.is_borrowed() || now.room.tokens() <= 1) return;
  const std::int64_t all = now.batch.tokens();
  buffer own =
      now.memory.take(tensor.part(now.room.tokens()).count * row_bytes, VELO_PURPOSE_ACTIVATION);
  const auto [first, count] = tensor.part(all);
  std::memcpy(own.data(), input.data() + first * row_bytes,
              static_cast<std::size_t>(count * row_bytes));
  input = std::move(own);
}

// Undoes that.
inline void gather_own_rows(const pass& now, buffer& input, velo_dtype type, std::int64_t width) {
  const std::int64_t row_bytes = width * (type.bits / 8), bytes = now.room.tokens() * row_bytes;
  if (!now.parallel.tensor.shares_saved() || input.bytes() == bytes || now.room.tokens() <= 1)
    return;
  buffer all = now.memory.take(bytes, VELO_PURPOSE_ACTIVATION);
  const std::int64_t tokens = now.batch.tokens();
  now.parallel.tensor.gather(now.stream,
                             {input.data(), type, {now.parallel.tensor.part(tokens).count, width}},
                             {all.data(), type, {tokens, width}});
  input = std::move(all);
}

}  // namespace decoder
