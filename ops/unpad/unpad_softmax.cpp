// unpad_softmax as an operator, by the kernels of softmax: rows whose length is that of their
// sequence. A task is some rows of one sequence, about 64 KiB.
#include <algorithm>

#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "ops/softmax/softmax.hpp"
#include "ops/unpad/sequences.hpp"
#include "velo/ops_unpad.h"

namespace velo::ops {
namespace {

struct unpad_softmax_problem {
  std::int64_t repeats, count;  // tensors of `count` elements, one after the other
};

unpad_softmax_problem problem_of(const velo_tensor& x, const char* field, const velo_ints& lengths,
                                 std::int64_t heads) {
  require_rank(x, field, 1, 2);
  const std::int64_t count = total_scores(lengths, std::int64_t{1} << 28, heads);
  const std::int64_t sizes[] = {x.ndim == 2 ? x.shape[0] : count, count};
  require_shape(x, field, x.ndim, sizes);
  return {x.ndim == 2 ? x.shape[0] : 1, count};
}

void infer(const velo_unpad_softmax_args& a, unpad_softmax_problem& p, output_shapes& outputs) {
  p = problem_of(*a.x, "x", *a.seq_len, a.head_num);
  outputs.like(a.y, *a.x);
}

void infer_backward(const velo_unpad_softmax_backward_args& a, unpad_softmax_problem& p,
                    output_shapes& outputs) {
  p = problem_of(*a.dy, "dy", *a.seq_len, a.head_num);
  require_like(*a.y, "y", *a.dy, "dy");
  outputs.like(a.dx, *a.dy);
}

// A sequence's rows as slices, and where they begin.
struct sequence_rows {
  std::int64_t first_task, first_element, length;
  row_slices slices;
};

// Calls row(first element, length, thread) for every row.
template <class Row>
void for_rows(const velo_ints& lengths, std::int64_t heads, const unpad_softmax_problem& p,
              core::execution& on, Row&& row) {
  auto* all = on.scratch.take<sequence_rows>(static_cast<std::size_t>(lengths.count));
  std::int64_t tasks = 0, elements = 0;
  for (std::int64_t i = 0; i < lengths.count; ++i) {
    const std::int64_t s = lengths.data[i];
    all[i] = {tasks, elements, s, slice_rows(heads * s, 4 * s)};
    tasks += all[i].slices.tasks(), elements += heads * s * s;
  }
  on.threads.slices(p.repeats * tasks, [&](std::int64_t task, int thread) {
    const std::int64_t at = task % tasks, base = task / tasks * p.count;
    const sequence_rows& q = *(std::upper_bound(all, all + lengths.count, at,
                                                [](std::int64_t t, const sequence_rows& other) {
                                                  return t < other.first_task;
                                                }) -
                               1);
    const std::int64_t first = q.slices.begin(at - q.first_task);
    for (std::int64_t r = first; r < first + q.slices.count(at - q.first_task); ++r)
      row(base + q.first_element + r * q.length, q.length, thread);
  });
}

template <class T>
void forward(const velo_unpad_softmax_args& a, const unpad_softmax_problem& p,
             const softmax_kernels& kernels, core::execution& on) {
  std::int64_t longest = 0;
  for (std::int64_t i = 0; i < a.seq_len->count; ++i)
    longest = std::max(longest, a.seq_len->data[i]);
  auto* work = on.scratch.take<float>(static_cast<std::size_t>(longest * on.threads.threads()));
  for_rows(*a.seq_len, a.head_num, p, on, [&](std::int64_t at, std::int64_t n, int thread) {
    kernels.forward(softmax_row<T>{data<const T>(a.x) + at, nullptr, data<T>(a.y) + at,
                                   work + thread * longest, n, 1.0f, false});
  });
}

template <class T>
void backward(const velo_unpad_softmax_backward_args& a, const unpad_softmax_problem& p,
              const softmax_kernels& kernels, core::execution& on) {
  for_rows(*a.seq_len, a.head_num, p, on, [&](std::int64_t at, std::int64_t n, int) {
    kernels.backward(softmax_backward_row<T>{data<const T>(a.dy) + at, data<const T>(a.y) + at,
                                             data<T>(a.dx) + at, n, 1.0f, false});
  });
}

}  // namespace

extern const operator_def unpad_softmax_operator =
    define<infer, by_dtype<&velo_unpad_softmax_args::x, forward<float>, forward<simd::bf16>,
                           forward<simd::f16>>>(softmax_kernel_list);
extern const operator_def unpad_softmax_backward_operator =
    define<infer_backward, by_dtype<&velo_unpad_softmax_backward_args::dy, backward<float>,
                                    backward<simd::bf16>, backward<simd::f16>>>(
        softmax_kernel_list);

}  // namespace velo::ops
