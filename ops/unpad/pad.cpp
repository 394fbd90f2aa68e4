// pad_seqlen, unpad_seqlen, their gradients, which are each other, and unpad_gen_attention_mask as
// operators: where each sequence begins, and how its rows become slices.
#include "ops/unpad/pad.hpp"

#include <algorithm>

#include "core/round_up.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "ops/unpad/sequences.hpp"
#include "velo/ops_unpad.h"

namespace velo::ops {
namespace {

struct pad_problem {
  std::int64_t rows;       // of a batch's sequence
  std::int64_t row_bytes;  // of one position
};

// The batch [sequences, rows, H] that flat sequences [T, H] become.
template <class Args>
void infer_pad(const Args& a, const velo_tensor& flat, const char* field,
               const velo_tensor* const& y, pad_problem& p, output_shapes& outputs) {
  require_rank(flat, field, 2, 2);
  const std::int64_t total = total_length(*a.seq_len, a.max_seq_len);
  const std::int64_t from[] = {total, flat.shape[1]};
  require_shape(flat, field, 2, from);
  const std::int64_t sizes[] = {a.seq_len->count, a.max_seq_len, flat.shape[1]};
  if (!core::countable(3, sizes)) core::refuse_sizes(3, sizes, "args.max_seq_len");
  outputs.set(y, flat.dtype, 3, sizes);
  p = {a.max_seq_len, flat.shape[1] * element_bytes(flat.dtype)};
}

template <class Args>
void infer_unpad(const Args& a, const velo_tensor& batch, const char* field,
                 const velo_tensor* const& y, pad_problem& p, output_shapes& outputs) {
  require_rank(batch, field, 3, 3);
  require_count(*a.seq_len, batch.shape[0]);
  const std::int64_t sizes[] = {total_length(*a.seq_len, batch.shape[1]), batch.shape[2]};
  outputs.set(y, batch.dtype, 2, sizes);
  p = {batch.shape[1], batch.shape[2] * element_bytes(batch.dtype)};
}

// Moves rows between the flat sequences and the batch; `padded`: the batch is written.
void move(const velo_ints& lengths, const velo_tensor& from, const velo_tensor& to, bool padded,
          const pad_problem& p, const pad_kernels& kernels, core::execution& on) {
  auto* starts = on.scratch.take<std::int64_t>(static_cast<std::size_t>(lengths.count));
  std::int64_t start = 0;
  for (std::int64_t i = 0; i < lengths.count; start += lengths.data[i++]) starts[i] = start;
  const row_slices slices = slice_rows(p.rows, p.row_bytes);
  const bool bypass = bypass_cache(data<char>(&to), row_count(to), p.row_bytes, on);
  on.threads.slices(lengths.count * slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t i = task / slices.tasks(), first = slices.begin(task % slices.tasks());
    const std::int64_t end = first + slices.count(task % slices.tasks());
    const std::int64_t kept = std::clamp(lengths.data[i], first, end);
    const std::int64_t flat = (starts[i] + first) * p.row_bytes;
    const std::int64_t batch = (i * p.rows + first) * p.row_bytes;
    kernels.move({data<const char>(&from) + (padded ? flat : batch),
                  data<char>(&to) + (padded ? batch : flat), (kept - first) * p.row_bytes, bypass});
    if (padded)
      kernels.move({nullptr, data<char>(&to) + batch + (kept - first) * p.row_bytes,
                    (end - kept) * p.row_bytes, bypass});
  });
}

void infer(const velo_pad_seqlen_args& a, pad_problem& p, output_shapes& outputs) {
  infer_pad(a, *a.x, "x", a.y, p, outputs);
}
void infer(const velo_unpad_seqlen_backward_args& a, pad_problem& p, output_shapes& outputs) {
  infer_pad(a, *a.dy, "dy", a.dx, p, outputs);
}
void infer(const velo_unpad_seqlen_args& a, pad_problem& p, output_shapes& outputs) {
  infer_unpad(a, *a.x, "x", a.y, p, outputs);
}
void infer(const velo_pad_seqlen_backward_args& a, pad_problem& p, output_shapes& outputs) {
  infer_unpad(a, *a.dy, "dy", a.dx, p, outputs);
}

template <class Args>
void infer_any(const Args& a, pad_problem& p, output_shapes& outputs) {
  infer(a, p, outputs);
}

template <class Args, auto From, auto To, bool Padded>
void run(const Args& a, const pad_problem& p, const pad_kernels& kernels, core::execution& on) {
  move(*a.seq_len, *(a.*From), *(a.*To), Padded, p, kernels, on);
}

template <class Args, auto From, auto To, bool Padded>
constexpr operator_def moving() {
  return define<infer_any<Args>, run<Args, From, To, Padded>>(pad_kernel_list);
}

void infer_mask(const velo_unpad_gen_attention_mask_args& a, pad_problem& p,
                output_shapes& outputs) {
  require_rank(*a.mask, "mask", 4, 4);
  const std::int64_t masks = a.mask->shape[1], s = a.mask->shape[3];
  const std::int64_t sizes[] = {a.seq_len->count, masks, s, s};
  require_shape(*a.mask, "mask", 4, sizes);
  const std::int64_t scores[] = {masks, total_scores(*a.seq_len, s, a.head_num)};
  if (!core::countable(2, scores)) core::refuse_sizes(2, scores, "args.head_num");
  const std::int64_t count = masks * scores[1];
  outputs.set(a.y, a.mask->dtype, 1, &count);
  p = {s, element_bytes(a.mask->dtype)};
}

// A task is a row of a mask of one sequence: read once, written for each head.
void run_mask(const velo_unpad_gen_attention_mask_args& a, const pad_problem& p,
              const pad_kernels& kernels, core::execution& on) {
  const velo_ints& lengths = *a.seq_len;
  const std::int64_t masks = a.mask->shape[1];
  auto* starts = on.scratch.take<std::int64_t>(static_cast<std::size_t>(lengths.count));
  std::int64_t start = 0;
  for (std::int64_t i = 0; i < lengths.count; ++i) {
    starts[i] = start;
    start += a.head_num * masks * lengths.data[i] * lengths.data[i];
  }
  const std::int64_t amount = slice_elements(start).tasks();
  on.threads.slices(amount, lengths.count * masks * p.rows, [&](std::int64_t task, int) {
    const std::int64_t mask = task / p.rows, row = task % p.rows, i = mask / masks;
    const std::int64_t s = lengths.data[i], copies = mask % masks * a.head_num;
    if (row >= s) return;
    const char* from = data<const char>(a.mask) + (mask * p.rows + row) * p.rows * p.row_bytes;
    for (std::int64_t head = 0; head < a.head_num; ++head)
      kernels.move({from,
                    data<char>(a.y) + (starts[i] + ((copies + head) * s + row) * s) * p.row_bytes,
                    s * p.row_bytes, false});
  });
}

}  // namespace

extern const operator_def pad_seqlen_operator =
    moving<velo_pad_seqlen_args, &velo_pad_seqlen_args::x, &velo_pad_seqlen_args::y, true>();
extern const operator_def pad_seqlen_backward_operator =
    moving<velo_pad_seqlen_backward_args, &velo_pad_seqlen_backward_args::dy,
           &velo_pad_seqlen_backward_args::dx, false>();
extern const operator_def unpad_seqlen_operator =
    moving<velo_unpad_seqlen_args, &velo_unpad_seqlen_args::x, &velo_unpad_seqlen_args::y, false>();
extern const operator_def unpad_seqlen_backward_operator =
    moving<velo_unpad_seqlen_backward_args, &velo_unpad_seqlen_backward_args::dy,
           &velo_unpad_seqlen_backward_args::dx, true>();
extern const operator_def unpad_gen_attention_mask_operator =
    define<infer_mask, run_mask>(pad_kernel_list);

}  // namespace velo::ops
