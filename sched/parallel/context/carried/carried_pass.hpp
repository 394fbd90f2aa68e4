// A plan carried out by one rank with its tensors: the forward or the gradient, step by step.
//
// A step gets the rows that it needs, sends its own, and computes. Outputs and gradients of queries
// are float32 sums of this rank, in the result itself if that is float32. Gradients of a block of
// keys are float32 sums, too, which go from rank to rank one step behind; each is rounded once, at
// the owner of its rows. In an adaptive plan another rank may compute queries with keys of its own,
// and a part of their result returns (carried_remote.cpp). Where rows of peers are read in place,
// the forward computes at the end, some heads after others, so that their sums stay in the cache.
// Invariant: the bits depend on the plan, never on the carrier. Cost: the products of the rank's
// cells; float32 sums of its queries, and of three blocks of keys.
#pragma once

#include <deque>

#include "sched/parallel/context/carried/block_carrier.hpp"
#include "sched/parallel/context/carried/partial_attention.hpp"
#include "sched/parallel/context/carried/remote_queries.hpp"
#include "sched/parallel/context/rank_share.hpp"

namespace velo::sched {

// The tensors of this rank's rows. Those that a pass does not have are empty.
struct pass_tensors {
  row_store q, k, v, out;
  row_store dout, dq, dk, dv;
  float *max = nullptr, *sum = nullptr;  // [batch, heads, rows] of what it computes
  char* kept = nullptr;                  // of the forward for the gradient
  char* given = nullptr;                 // kept by the call of the layer that owns the keys
};

class carried_pass {
 public:
  carried_pass(const rank_share& share, const head_widths& widths, const attention_call& call,
               const pass_tensors& tensors, step_memory& memory, core::execution& on);

  void forward(block_carrier& by) { run(by, false); }
  void gradient(block_carrier& by) { run(by, true); }

 private:
  struct holding {
    content what;
    row_store store;
  };
  // Sums of dk or dv.
  struct key_sums {
    content what;
    row_store store;        // float32
    bool is_begun = false;  // else it holds nothing yet
  };

  // A part of the forward that is still to be computed.
  struct waiting_part {
    attention_part part;
    span heads;
    forward_stores in;
  };

  void run(block_carrier& by, bool gradient);
  void set_up();
  void place_given();
  void place_kept();
  void offer_kept(block_carrier& by) const;
  void* place_in(const row_store& store, const block_message& m) const;
  void count_tasks();
  void arrive(block_carrier& by);
  void land(const landing& one, const row_store& kept, block_carrier& by);
  void take(const block_message& m, const row_store& from, block_carrier& by);
  void take_part(const block_message& m, const row_store& from, block_carrier& by);
  void send(block_carrier& by);
  row_store source_of(const block_message& m, block_carrier& by);
  row_store computed_part_of(const block_message& m);
  row_store remote_gradient_of(const block_message& m);
  void compute(block_carrier& by);
  bool is_remote(const attention_task& task) const;
  void add_parts_of(const attention_task& task);
  void attend_to_remote(const attention_task& task, block_carrier& by);
  void add_gradients_of_remote(const attention_task& task, block_carrier& by);
  void attend_to_parts(block_carrier& by);
  std::int64_t key_heads_at_once() const;
  void add_gradients_of(const attention_task& task, block_carrier& by);
  void add_part_gradients(const attention_part& part, const attention_task& task,
                          gradient_stores& in, block_carrier& by);
  row_numbers make_numbers(const row_places& of, span heads);
  bool goes_on(const row_run& run);
  bool is_last(const std::vector<attention_part>& parts, std::size_t index) const;
  void fill_rows(std::int64_t first, std::int64_t last);
  void begin(key_sums& sums, const row_run& written, core::execution& turn);
  void complete_queries(block_carrier& by);
  void finish_results(block_carrier& by);
  void finish_keys(content what, const row_store& to);

  // The store that has some rows and heads of a content. Throws INTERNAL if none has.
  const row_store& find(content what, const rows& of, span heads) const;
  // The sums of exactly these rows and heads.
  key_sums& sums_of(content what, const rows& of, span heads);
  key_sums& sums_that_take(const block_message& m);
  // The sums that have these rows and heads, if any.
  key_sums* find_sums(content what, const rows& of, span heads);
  row_store temporary(const row_places& places, span heads, std::int64_t width,
                      ops::element_type type);
  std::size_t statistic_bytes() const {
    return dense_bytes(call_.batch, share_.queries().size(), share_.heads(), 1,
                       ops::element_type::f32);
  }
  const row_store& own_of(content what) const;

  const rank_share& share_;
  const attention_pass* pass_ = nullptr;
  bool is_gradient_ = false;
  const head_widths widths_;
  const attention_call call_;
  const pass_tensors tensors_;
  step_memory& memory_;
  core::execution& on_;
  std::int64_t step_ = 0;

  std::vector<holding> holdings_;  // that tasks and messages read
  std::deque<key_sums> key_sums_;
  std::deque<row_places> places_;        // of key_sums_, and of rows that others compute
  std::vector<row_store> remote_parts_;  // what was computed for others: outputs, or dq
  std::vector<row_store> kept_;          // of the forward's landings
  // Outputs or dq of the queries that this rank computes, in the tensors' type: the result itself,
  // or what other ranks get a part of.
  row_store result_;
  row_store sums_;  // the same in float32; result_ if that is
  softmax_sums statistics_{};
  std::vector<bool> has_any_;     // by row of queries: it has sums
  std::vector<bool> is_written_;  // by row: result_ has it
  std::vector<int> tasks_left_;   // by row: the number of tasks that are not begun
  std::vector<waiting_part> waiting_;
  bool is_complete_ = false;
};

}  // namespace velo::sched
