// The checks and the slices of an update; see the header.
#include "ops/optimizer/adamw_update.hpp"

#include <algorithm>

#include "core/round_up.hpp"
#include "ops/operator/rows.hpp"

namespace velo::ops {
namespace {

// In the range of all elements a parameter begins at a multiple of every vector's width.
constexpr std::int64_t apart = 64;

// Tensor i of a list of tensors, which may be left out.
const velo_tensor* at(const velo_tensor* list, std::int64_t i) {
  return list == nullptr ? nullptr : list + i;
}

void require_beside(const velo_tensor* list, std::int64_t i, const char* field, bool listed,
                    const velo_tensor& model) {
  if (list == nullptr || same_shape(list[i], model)) return;
  require_shape(list[i], listed ? core::concat(field, "[", i, "]").buffer : field, model.ndim,
                model.shape);
}

// The place of a dtype in a combination.
int index_of(velo_dtype dtype) {
  return dtype == f32 ? 0 : dtype == bf16 ? 1 : 2;
}

template <class T>
T* elements_from(const velo_tensor* t, std::int64_t first) {
  return t == nullptr ? nullptr : data<T>(t) + first;
}
void* bytes_from(const velo_tensor& t, std::int64_t first) {
  return data<char>(&t) + first * element_bytes(t.dtype);
}

// Updates elements [first, first + n) of parameter i.
void update_part(const adamw_lists& of, std::int64_t i, std::int64_t first, std::int64_t n,
                 const adamw_factors& by, const apply_fused_adamw_kernels& kernels) {
  const velo_tensor &param = of.param[i], &grad = of.grad[i], &m = of.m[i];
  const velo_tensor* v_max = at(of.v_max, i);
  const int largest = v_max == nullptr ? 0 : index_of(v_max->dtype);
  const adamw_slice slice{bytes_from(param, first),
                          elements_from<float>(at(of.master, i), first),
                          bytes_from(grad, first),
                          bytes_from(m, first),
                          bytes_from(of.v[i], first),
                          v_max == nullptr ? nullptr : bytes_from(*v_max, first),
                          static_cast<adamw_element>(largest),
                          elements_from<float>(at(of.ema, i), first),
                          n,
                          by};
  kernels.update.at(index_of(param.dtype), index_of(grad.dtype), index_of(m.dtype))(slice);
}

// The first element of each parameter in the range of all elements, and last the range's end.
const std::int64_t* offsets_of(const adamw_lists& lists, core::arena& scratch) {
  auto* begin = scratch.take<std::int64_t>(static_cast<std::size_t>(lists.count + 1));
  begin[0] = 0;
  for (std::int64_t i = 0; i < lists.count; ++i)
    begin[i + 1] = begin[i] + core::round_up(numel(lists.param[i]), apart);
  return begin;
}

}  // namespace

void require_update(const adamw_lists& lists, bool listed) {
  for (std::int64_t i = 0; i < lists.count; ++i) {
    const velo_tensor& p = lists.param[i];
    require_beside(lists.grad, i, "grad", listed, p);
    require_beside(lists.master, i, "master", listed, p);
    require_beside(lists.m, i, "m", listed, p);
    require_beside(lists.v, i, "v", listed, p);
    require_beside(lists.v_max, i, "v_max", listed, p);
    require_beside(lists.ema, i, "ema", listed, p);
    if (lists.v[i].dtype == lists.m[i].dtype) continue;
    require_dtype(lists.v[i], listed ? core::concat("v[", i, "]").buffer : "v", lists.m[i].dtype);
  }
}

const velo_tensors& require_list(const velo_tensors* list, const char* field) {
  if (list == nullptr)
    core::fail(VELO_ERR_NULL, core::concat("args.", field), "a list of tensors", "NULL");
  return *list;
}

const velo_tensor* tensors_beside(const velo_tensors* list, const char* field,
                                  const velo_tensors& param) {
  if (list == nullptr) return nullptr;
  if (list->count != param.count)
    core::fail(VELO_ERR_ARGUMENT, core::concat("args.", field, ".count"),
               core::concat(param.count, ", as args.param.count"), core::number(list->count));
  return list->data;
}

void update(const adamw_lists& lists, const adamw_factors& by,
            const apply_fused_adamw_kernels& kernels, core::execution& on) {
  const std::int64_t* begin = offsets_of(lists, on.scratch);
  const row_slices slices = slice_elements(begin[lists.count]);
  on.threads(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t from = slices.begin(task), end = from + slices.count(task);
    std::int64_t i = std::upper_bound(begin, begin + lists.count, from) - begin - 1;
    for (; i < lists.count && begin[i] < end; ++i) {
      const std::int64_t first = std::max(from - begin[i], std::int64_t{0});
      const std::int64_t last = std::min(end - begin[i], numel(lists.param[i]));
      if (first < last) update_part(lists, i, first, last - first, by, kernels);
    }
  });
}

}  // namespace velo::ops
