// Sizes, strides and checks by layout.
#include "ops/attention/attention_layout.hpp"

#include <algorithm>

#include "core/failure.hpp"

namespace velo::ops {

using core::fail;
using core::text;

namespace {
constexpr std::int64_t largest_head = 512;
}

bool heads_in_rows(std::int64_t layout) {
  return layout == VELO_ATTENTION_LAYOUT_SBH || layout == VELO_ATTENTION_LAYOUT_BSH;
}

int rank_of(std::int64_t layout) {
  return layout == VELO_ATTENTION_LAYOUT_BSND || layout == VELO_ATTENTION_LAYOUT_BNSD ? 4 : 3;
}

dimensions dimensions_of(const velo_tensor& t, std::int64_t layout, std::int64_t heads) {
  const std::int64_t* s = t.shape;
  switch (layout) {
    case VELO_ATTENTION_LAYOUT_BSND:
      return {s[0], s[1], s[2], s[3]};
    case VELO_ATTENTION_LAYOUT_BNSD:
      return {s[0], s[2], s[1], s[3]};
    case VELO_ATTENTION_LAYOUT_SBH:
      return {s[1], s[0], heads, s[2] / heads};
    case VELO_ATTENTION_LAYOUT_BSH:
      return {s[0], s[1], heads, s[2] / heads};
    default:
      return {1, s[0], s[1], s[2]};
  }
}

std::int64_t stride_of(const velo_tensor& t, int i) {
  if (t.strides != nullptr) return t.strides[i];
  std::int64_t step = 1;
  for (int j = t.ndim - 1; j > i; --j) step *= t.shape[j];
  return step;
}

attention_strides strides_of(const velo_tensor& t, std::int64_t layout, std::int64_t head) {
  std::int64_t s[max_rank] = {};
  for (int i = 0; i < t.ndim; ++i) s[i] = stride_of(t, i);
  switch (layout) {
    case VELO_ATTENTION_LAYOUT_BSND:
      return {s[0], s[1], s[2]};
    case VELO_ATTENTION_LAYOUT_BNSD:
      return {s[0], s[2], s[1]};
    case VELO_ATTENTION_LAYOUT_SBH:
      return {s[1], s[0], head};
    case VELO_ATTENTION_LAYOUT_BSH:
      return {s[0], s[1], head};
    default:
      return {0, s[0], s[1]};
  }
}

void require_dense_rows(const velo_tensor& t, const char* field) {
  if (t.strides != nullptr && t.shape[t.ndim - 1] > 1 && t.strides[t.ndim - 1] != 1) {
    fail(VELO_ERR_LAYOUT, text("args.%s.strides", field), "unit stride in the last dimension",
         shape_name(t.ndim, t.strides));
  }
}

void require_size(const char* field, const char* part, std::int64_t got, std::int64_t wanted) {
  if (got == wanted) return;
  fail(VELO_ERR_SHAPE, text("args.%s.shape", field), core::concat(part, " ", wanted),
       core::number(got));
}

void require_head(const char* field, std::int64_t size) {
  if (size >= 1 && size <= largest_head) return;
  fail(VELO_ERR_SHAPE, text("args.%s.shape", field),
       core::concat("heads of 1 to ", largest_head, " elements"), core::number(size));
}

std::int64_t heads_of_row(const velo_tensor& t, const char* field, std::int64_t part) {
  const std::int64_t row = t.shape[t.ndim - 1];
  if (part < 1 || row % part != 0 || row == 0) {
    fail(VELO_ERR_SHAPE, text("args.%s.shape", field),
         core::concat("a last dimension that is a multiple of ", part), core::number(row));
  }
  return row / part;
}

void require_ends(const velo_ints* list, const char* field, std::int64_t total) {
  if (list == nullptr) {
    fail(VELO_ERR_NULL, text("args.%s", field), "ends of the sequences for layout tnd", "NULL");
  }
  std::int64_t before = 0;
  for (std::int64_t i = 0; i < list->count; ++i) {
    if (list->data[i] < before) {
      fail(VELO_ERR_ARGUMENT, text("args.%s", field), "values that never decrease, from 0",
           core::concat(list->data[i], " after ", before));
    }
    before = list->data[i];
  }
  if (before != total) {
    fail(VELO_ERR_ARGUMENT, text("args.%s", field),
         core::concat("a last value of ", total, ", the size of the first dimension"),
         core::number(before));
  }
}

std::int64_t longest(const velo_ints& ends) {
  std::int64_t most = 0, before = 0;
  for (std::int64_t i = 0; i < ends.count; ++i) {
    most = std::max(most, ends.data[i] - before);
    before = ends.data[i];
  }
  return most;
}

std::int64_t length_of(const std::int64_t* ends, std::int64_t i) {
  return ends[i] - (i == 0 ? 0 : ends[i - 1]);
}

}  // namespace velo::ops
