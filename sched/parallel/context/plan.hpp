// A plan of context-parallel attention: who multiplies which queries with which keys, and what is
// sent, step by step.
//
// A plan is a value. Generators make it (one a file: rings.cpp, all_gather.cpp, adaptive/). `prove`
// shows that it computes each visible cell once, that every task and message finds its rows, and
// that every result ends at the owner of its row. Nothing here communicates. A step of a pass
// delivers the messages that it needs, sends its own, and computes. Invariant: tasks of a rank and
// messages are in the order of their steps. Cost: a few tasks for each pair of ranks and document.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sched/parallel/context/rows.hpp"

namespace velo::sched {

// The cells of queries and keys that a task computes.
enum class cells { all, causal, masked };  // causal: keys up to the query; masked: that are visible

// Partial attention of queries and keys of one document.
struct attention_task {
  std::int64_t step;
  rows queries, keys;
  span heads;  // of queries
  cells visible;
};

enum class content { q, k, v, out, dout, dq, dk, dv };

inline bool is_of_keys(content what) {  // with heads of keys
  return what == content::k || what == content::v || what == content::dk || what == content::dv;
}

// Elements of a head: of queries and keys, and of values and outputs.
struct head_widths {
  std::int64_t key, value;

  std::int64_t of(content what) const {
    const bool of_value =
        what == content::v || what == content::out || what == content::dout || what == content::dv;
    return of_value ? value : key;
  }
};

// Rows and heads that go from a rank to another: sent when `step` begins, there when `needed`
// begins; the number of steps stands for the end. The receiver adds dq, dk and dv to its own, and
// the sender forgets them.
struct block_message {
  std::int64_t step, needed, from, to;
  content what;
  rows of;
  span heads;                   // of keys where is_of_keys
  bool kept = false;            // of the forward: stays at the receiver for the gradient
  bool part = false;            // of out or dq: a float32 part that the receiver merges or adds
  std::int64_t statistics = 0;  // float32 numbers that go with each row and head
  bool remote = false;          // of queries that the receiver computes for the sender
};

// The forward or the gradient.
struct message_range {
  std::size_t begin, end;
};
struct attention_pass {
  std::int64_t steps = 0;
  std::vector<std::vector<attention_task>> tasks;  // by rank
  std::vector<block_message> messages;

  message_range sent_in(std::int64_t step) const;
  void sort_messages();  // by step, stable
};

struct head_counts {
  std::int64_t queries, keys;

  span keys_of(span heads) const;  // that a range of query heads needs
};

// The sequence, the visible cells, the heads and the ranks that a plan is made for.
struct sequence_shape {
  documents all;
  bool causal;
  const std::uint8_t* mask;  // [sequence][sequence], nonzero = hidden; or null
  head_counts heads;
  std::int64_t ranks;

  std::int64_t sequence() const { return all.sequence(); }
  cells visible() const {
    return mask != nullptr ? cells::masked : causal ? cells::causal : cells::all;
  }
};

// The rounds of an adaptive plan, and those that the rule needs, whose first choices ignore the
// limit of units.
struct round_counts {
  std::int64_t rounds = 0, by_rule = 0;
  std::int64_t neighbors = 1;  // of a ring rank; messages between them are no units
};

struct sequence_plan {
  std::vector<rows> held;  // by rank
  attention_pass forward, gradient;
  std::optional<round_counts> adaptive;
  // Of a layer that attends to the keys of an earlier one: the messages that this one's plan keeps.
  // Their keys and values are there from the beginning, in both passes.
  std::vector<block_message> given;
};

// What the cache of a rank holds. In a ring: blocks of other ranks, which do not travel again for
// the gradient, beside the block that the rank met last. Without a ring: the rank's own rows from
// before the exchange of heads, in place of the exchanged ones; they are exchanged again.
enum class kept_blocks { none, keys, both };

// Neighbors that exchange heads, and whether each gets all key heads or those that its query heads
// need.
struct exchange_shape {
  std::int64_t neighbors;
  bool gathers_keys = false;
};

// Ranks in rings of ranks / ulysses, in windows; `ulysses` neighbors exchange heads. A ring of one
// is Ulysses attention, one neighbor ring attention.
struct ring_shape {
  std::int64_t ulysses, window;
  kept_blocks kept = kept_blocks::none;
  bool gathers_keys = false;
  bool keeps_each = false;  // a cache has the block before the last, too
};
sequence_plan plan_rings(const sequence_shape& of, const ring_shape& ring);
// Keys and values of all ranks on each.
sequence_plan plan_all_gather(const sequence_shape& of);

// Units of messages that a rank sends and receives in a step of an adaptive plan, at most: one for
// each content. The gradient computes 2.5 times as much.
constexpr std::int64_t most_units_forward = 6, most_units_gradient = 12;
// Blocks of a masked sequence in rounds.
sequence_plan plan_adaptive(const sequence_shape& of, const exchange_shape& how);

// Turns a layer's plan into that of a later layer which attends to the same keys: what it keeps of
// keys and values is given, and not sent.
void give_keys(sequence_plan& plan);

// The cells of a task that are visible.
std::int64_t cells_of(const attention_task& task, const sequence_shape& of);

// Throws INTERNAL where the plan breaks one of the promises above.
void prove(const sequence_plan& plan, const sequence_shape& of);

}  // namespace velo::sched
