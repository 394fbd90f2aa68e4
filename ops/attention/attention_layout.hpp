// Tensors of attention in each layout: their sizes, their strides, and checks of single shapes.
//
// The engine (attention.hpp) knows no layouts: a layout becomes three strides a tensor. A check
// names the argument, what was expected and what came.
#pragma once

#include <cstdint>

#include "ops/attention/engine/attention.hpp"
#include "ops/operator/tensor.hpp"
#include "velo/ops_attention.h"

namespace velo::ops {

// The sizes in a tensor's shape, by its layout.
struct dimensions {
  std::int64_t batch = 0, length = 0, heads = 0, head = 0;
};

bool heads_in_rows(std::int64_t layout);
int rank_of(std::int64_t layout);

// Reads a tensor's sizes. Where heads lie in rows, there are `heads` of them.
dimensions dimensions_of(const velo_tensor& t, std::int64_t layout, std::int64_t heads);
attention_strides strides_of(const velo_tensor& t, std::int64_t layout, std::int64_t head);

// Elements between neighbors in dimension `i` of a tensor of at most 4.
std::int64_t stride_of(const velo_tensor& t, int i);

void require_dense_rows(const velo_tensor& t, const char* field);
void require_size(const char* field, const char* part, std::int64_t got, std::int64_t wanted);
void require_head(const char* field, std::int64_t size);
// The last dimension divided by `part`, which must divide it.
std::int64_t heads_of_row(const velo_tensor& t, const char* field, std::int64_t part);
// Ends of sequences that never decrease, the last being `total`.
void require_ends(const velo_ints* list, const char* field, std::int64_t total);
std::int64_t longest(const velo_ints& ends);
std::int64_t length_of(const std::int64_t* ends, std::int64_t sequence);

}  // namespace velo::ops
