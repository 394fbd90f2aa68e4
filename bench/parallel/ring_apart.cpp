// The rows of the other block come from the plan.
#include "bench/parallel/ring_apart.hpp"

#include "bench/harness/require.hpp"

namespace velo::bench {
namespace {

// Queries or keys of the task with the other block, which is the forward's second step.
row_list rows_with_other(velo_sequence_plan ring, int rank, velo_sequence_part part) {
  std::int64_t count = 0;
  const auto get = [&](std::int64_t* spans) {
    require(velo_sequence_plan_get_spans(ring, VELO_SEQUENCE_FORWARD, rank, 1, part, 0, spans,
                                         spans == nullptr ? 0 : count, &count));
  };
  get(nullptr);
  row_list spans(static_cast<std::size_t>(2 * count));
  get(spans.data());
  return rows_in(spans);
}

}  // namespace

ring_apart::ring_apart(const attention_shape& of, const rank_of& me, velo_sequence_plan ring,
                       bool gradient)
    : me_(me),
      gradient_(gradient),
      own_(of, rows_of(ring, me.number), me, nullptr, nullptr),
      other_(of, rows_with_other(ring, me.number, VELO_SEQUENCE_TASK_QUERIES),
             rows_with_other(ring, me.number, VELO_SEQUENCE_TASK_KEYS), me.pool),
      before_(dtype::f32, other_.q.rows(), of.heads, of.width, 5),
      now_(dtype::f32, other_.q.rows(), of.heads, of.width, 6),
      sent_{of_own_rows(of), of_own_rows(of)},
      received_{of_own_rows(of), of_own_rows(of)} {
  statistics_.resize(of.heads, static_cast<std::int64_t>(other_.q.rows().size()));
  own_.forward();
  attend(me_.stream, other_, false);
}

row_block ring_apart::of_own_rows(const attention_shape& of) const {
  return {gradient_ ? dtype::f32 : of.type,
          own_.tensors().k.rows(),
          of.key_heads,
          of.width,
          7,
          0,
          me_.pool};
}

void ring_apart::compute() const {
  if (gradient_) {
    add_gradients(me_.stream, other_, false);
    return own_.gradient();
  }
  own_.forward();
  attend(me_.stream, other_, false);
  merge();
}

// Merges into the earlier results, as the ring does. Repeated calls leave numbers that are no
// attention.
void ring_apart::merge() const {
  const velo_tensor before = before_.flat(), now = now_.flat();
  const velo_tensor max = statistics_.max(), sum = statistics_.sum();
  const velo_tensor now_max = other_.softmax.max(), now_sum = other_.softmax.sum();
  velo_ring_attention_update_args args = VELO_RING_ATTENTION_UPDATE_ARGS_INIT;
  args.prev_out = &before, args.prev_max = &max, args.prev_sum = &sum;
  args.cur_out = &now, args.cur_max = &now_max, args.cur_sum = &now_sum;
  args.out = &before, args.max = &max, args.sum = &sum;
  require(velo_ring_attention_update(me_.stream, &args));
}

void ring_apart::exchange() const {
  velo_tensor tensors[4];
  velo_group_message messages[4];
  for (int i = 0; i < 4; ++i) {
    tensors[i] = (i < 2 ? sent_[i] : received_[i - 2]).view();
    messages[i] = {&tensors[i], 1 - me_.number, i < 2 ? VELO_MESSAGE_SEND : VELO_MESSAGE_RECEIVE};
  }
  require(velo_group_exchange(me_.stream, me_.group, messages, 4));
}

}  // namespace velo::bench
