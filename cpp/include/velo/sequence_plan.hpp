// Sequence plans: how ranks share the attention of one sequence that is cut between them.
#pragma once

#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"
#include "velo/sequence_plan.h"

VELO_CPP_BEGIN

namespace detail {
struct destroy_sequence_plan {
  static void call(velo_sequence_plan plan) noexcept { VELO_FN(sequence_plan_destroy)(plan); }
};
}  // namespace detail

// Owns a sequence plan.
class sequence_plan : public detail::owner<velo_sequence_plan, detail::destroy_sequence_plan> {
 public:
  // desc: initialized with VELO_SEQUENCE_DESC_INIT.
  static outcome<sequence_plan> create(const velo_sequence_desc& desc) {
    velo_sequence_plan handle = nullptr;
    const velo_status status = VELO_FN(sequence_plan_create)(&desc, &handle);
    sequence_plan made;
    made.reset(handle);
    return detail::finish<sequence_plan>(status, std::move(made));
  }

  operator velo_sequence_plan() const noexcept { return get(); }

  // Ranks, rows and steps.
  outcome<velo_sequence_info> info() const {
    velo_sequence_info info = {};
    info.struct_size = sizeof info;
    const velo_status status = VELO_FN(sequence_plan_get_info)(get(), &info);
    return detail::finish<velo_sequence_info>(status, info);
  }

  // Fills `spans`, with room for `capacity` pairs of begin and end, with the rows of a rank;
  // returns the number of pairs.
  outcome<int64_t> rows(int64_t rank, int64_t* spans, int64_t capacity) const {
    int64_t count = 0;
    const velo_status status =
        VELO_FN(sequence_plan_get_rows)(get(), rank, spans, capacity, &count);
    return detail::finish<int64_t>(status, count);
  }

  // The price of a rank's step.
  outcome<velo_sequence_step> step(velo_sequence_pass pass, int64_t rank, int64_t step) const {
    velo_sequence_step price = {};
    price.struct_size = sizeof price;
    const velo_status status = VELO_FN(sequence_plan_get_step)(get(), pass, rank, step, &price);
    return detail::finish<velo_sequence_step>(status, price);
  }

  // A task of a rank's step, by its index below step().tasks.
  outcome<velo_sequence_task> task(velo_sequence_pass pass, int64_t rank, int64_t step,
                                   int64_t index) const {
    velo_sequence_task task = {};
    task.struct_size = sizeof task;
    const velo_status status =
        VELO_FN(sequence_plan_get_task)(get(), pass, rank, step, index, &task);
    return detail::finish<velo_sequence_task>(status, task);
  }

  // A message of a rank's step, by its index below step().sends, or .receives.
  outcome<velo_sequence_message> message(velo_sequence_pass pass, int64_t rank, int64_t step,
                                         velo_sequence_part part, int64_t index) const {
    velo_sequence_message message = {};
    message.struct_size = sizeof message;
    const velo_status status =
        VELO_FN(sequence_plan_get_message)(get(), pass, rank, step, part, index, &message);
    return detail::finish<velo_sequence_message>(status, message);
  }

  // Fills `spans` with the rows of a task or a message; returns the number of pairs.
  outcome<int64_t> spans(velo_sequence_pass pass, int64_t rank, int64_t step,
                         velo_sequence_part part, int64_t index, int64_t* spans,
                         int64_t capacity) const {
    int64_t count = 0;
    const velo_status status = VELO_FN(sequence_plan_get_spans)(get(), pass, rank, step, part,
                                                                index, spans, capacity, &count);
    return detail::finish<int64_t>(status, count);
  }

  // Proves that each visible cell is computed once.
  outcome<> check() const { return detail::check(VELO_FN(sequence_plan_check)(get())); }

  // The plan as a text of the caller's string type.
  template <class String>
  outcome<String> write(velo_sequence_format format) const {
    return detail::text<String>([&](char* buffer, uint64_t capacity, uint64_t* needed) {
      return VELO_FN(sequence_plan_write)(get(), format, buffer, capacity, needed);
    });
  }
};

static_assert(sizeof(sequence_plan) == sizeof(void*));

VELO_CPP_END
