// The place of a part in the whole whose indices decide dropout: the checks of its fields, and its
// runs.
#include "ops/operator/dropout_part.hpp"

#include "core/failure.hpp"
#include "core/text/text.hpp"

namespace velo::ops {
namespace {

using core::concat;
using core::fail;
using core::text;

void require_entries(const velo_ints* list, const char* field, int count, const char* dimensions) {
  if (list == nullptr)
    fail(VELO_ERR_NULL, text("args.%s", field),
         concat(count, " values, beside those of the other list"), "NULL");
  if (list->count != count)
    fail(VELO_ERR_ARGUMENT, text("args.%s", field), concat(count, " values: ", dimensions),
         core::number(list->count));
}

}  // namespace

void check_dropout_part(const velo_ints* origin, const velo_ints* extents, int count,
                        const std::int64_t* own, const char* dimensions) {
  if (origin == nullptr && extents == nullptr) return;
  require_entries(origin, "dropout_origin", count, dimensions);
  require_entries(extents, "dropout_extents", count, dimensions);
  for (int i = 0; i < count; ++i) {
    const std::int64_t first = origin->data[i], all = extents->data[i];
    if (first >= 0 && own[i] <= all && first <= all - own[i]) continue;
    fail(VELO_ERR_ARGUMENT, "args.dropout_origin",
         concat("a block of ", own[i], " within ", all, " in dimension ", i), core::number(first));
  }
}

void check_dropout_part(const velo_ints* origin, const velo_ints* extents, const velo_tensor& x) {
  check_dropout_part(origin, extents, x.ndim, x.shape, "one for each dimension of the tensor");
}

dropout_indices::dropout_indices(int dimensions, const std::int64_t* shape, const velo_ints* origin,
                                 const velo_ints* extents) {
  levels_[0] = {1, 1};
  std::uint64_t stride = 1;
  for (int i = dimensions - 1; i >= 0; --i) {
    level& last = levels_[count_ - 1];
    if (stride == static_cast<std::uint64_t>(last.size) * last.stride)
      last.size *= shape[i];
    else if (shape[i] != 1)
      levels_[count_++] = {shape[i], stride};
    if (origin != nullptr) first_ += static_cast<std::uint64_t>(origin->data[i]) * stride;
    stride *= static_cast<std::uint64_t>(extents == nullptr ? shape[i] : extents->data[i]);
  }
}

}  // namespace velo::ops
