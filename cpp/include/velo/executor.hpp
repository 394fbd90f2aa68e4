// Executors of pipeline schedules, and mailboxes for ranks that are threads of one process.
#pragma once

#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"
#include "velo/executor.h"
#include "velo/group.hpp"
#include "velo/schedule.hpp"

VELO_CPP_BEGIN

namespace detail {
struct destroy_mailbox {
  static void call(velo_mailbox mailbox) noexcept { VELO_FN(mailbox_destroy)(mailbox); }
};
struct destroy_executor {
  static void call(velo_executor executor) noexcept { VELO_FN(executor_destroy)(executor); }
};
}  // namespace detail

// Owns a mailbox, which must outlive the executors that use its links.
class mailbox : public detail::owner<velo_mailbox, detail::destroy_mailbox> {
 public:
  static outcome<mailbox> create(int32_t ranks, int64_t timeout_ns) {
    velo_mailbox handle = nullptr;
    const velo_status status = VELO_FN(mailbox_create)(ranks, timeout_ns, &handle);
    mailbox made;
    made.reset(handle);
    return detail::finish<mailbox>(status, std::move(made));
  }

  operator velo_mailbox() const noexcept { return get(); }

  // The link by which a rank reaches the others.
  outcome<velo_link> link(int32_t rank) const {
    velo_link link = {};
    link.struct_size = sizeof link;
    const velo_status status = VELO_FN(mailbox_get_link)(get(), rank, &link);
    return detail::finish<velo_link>(status, link);
  }
};

// The link by which a rank of a group reaches the others; valid as long as the group exists.
inline outcome<velo_link> group_link(velo_group group) {
  velo_link link = {};
  link.struct_size = sizeof link;
  const velo_status status = VELO_FN(group_get_link)(group, &link);
  return detail::finish<velo_link>(status, link);
}

// Owns an executor: one rank's part of a schedule.
class executor : public detail::owner<velo_executor, detail::destroy_executor> {
 public:
  // desc.struct_size is set here.
  static outcome<executor> create(velo_context context, velo_schedule schedule,
                                  velo_executor_desc desc) {
    desc.struct_size = sizeof desc;
    velo_executor handle = nullptr;
    const velo_status status = VELO_FN(executor_create)(context, schedule, &desc, &handle);
    executor made;
    made.reset(handle);
    return detail::finish<executor>(status, std::move(made));
  }

  operator velo_executor() const noexcept { return get(); }

  // Runs the rank's row, while the other ranks run theirs.
  outcome<> run(velo_stream stream) const {
    return detail::check(VELO_FN(executor_run)(stream, get()));
  }
  // Validates the step of the last run; all ranks call it.
  outcome<> settle(velo_stream stream) const {
    return detail::check(VELO_FN(executor_settle)(stream, get()));
  }
  // The results of this rank's steps.
  outcome<velo_executor_stats> stats() const {
    velo_executor_stats all = VELO_EXECUTOR_STATS_INIT;
    const velo_status status = VELO_FN(executor_get_stats)(get(), &all);
    return detail::finish<velo_executor_stats>(status, all);
  }
  // Ends the run of all ranks; from any thread.
  outcome<> cancel() const { return detail::check(VELO_FN(executor_cancel)(get())); }

  // The measured timeline of all ranks in the last run; all ranks call it.
  outcome<velo::timeline> timeline() const {
    velo_timeline handle = nullptr;
    const velo_status status = VELO_FN(executor_get_timeline)(get(), &handle);
    return detail::finish<velo::timeline>(status, velo::timeline(handle));
  }
};

static_assert(sizeof(mailbox) == sizeof(void*));
static_assert(sizeof(executor) == sizeof(void*));

VELO_CPP_END
