// Entries of velo/executor.h.
#include "velo/executor.h"

#include <utility>

#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "core/handle/guard.hpp"
#include "sched/check/schedule_object.hpp"
#include "sched/executor/executor.hpp"
#include "sched/executor/group_link.hpp"
#include "sched/executor/mailbox.hpp"

using namespace velo;
using core::fail;
using core::text;

namespace {

// The structs of ABI 1.0; later ones are longer.
constexpr std::uint32_t link_size = 40;
constexpr std::uint32_t desc_size = 88;
constexpr std::uint32_t validation_size = 56;
constexpr std::uint32_t stats_size = 48;
static_assert(sizeof(velo_link) >= link_size && sizeof(velo_executor_desc) >= desc_size &&
              sizeof(velo_executor_validation) >= validation_size &&
              sizeof(velo_executor_stats) >= stats_size);
constexpr std::uint64_t most_state = 65536;

// Refuses a function of the link that is given without another one that it needs.
void require_with(const char* one, bool is_given, const char* other, bool other_is_given) {
  if (is_given && !other_is_given)
    fail(VELO_ERR_NULL, other, text("a function, since %s is given", one), "NULL");
}

velo_link read_link(const velo_link* given, std::int32_t ranks) {
  const velo_link none = VELO_LINK_INIT;
  if (given == nullptr && ranks == 1) return none;
  const velo_link link = capi::read_struct(given, link_size, "desc.link", none);
  if ((link.flags & ~std::uint32_t{VELO_LINK_WAITS}) != 0)
    fail(VELO_ERR_ARGUMENT, "desc.link.flags", "bits of VELO_LINK_*", text("%u", link.flags));
  if (link.send == nullptr) fail(VELO_ERR_NULL, "desc.link.send", "a function", "NULL");
  if (link.receive == nullptr) fail(VELO_ERR_NULL, "desc.link.receive", "a function", "NULL");
  require_with("start_send", link.start_send != nullptr, "desc.link.finish",
               link.finish != nullptr);
  require_with("start_send", link.start_send != nullptr, "desc.link.abort", link.abort != nullptr);
  require_with("borrow", link.borrow != nullptr, "desc.link.give_back", link.give_back != nullptr);
  return link;
}

velo_executor_validation read_validation(const velo_executor_validation* given) {
  const auto read = capi::read_struct(given, validation_size, "desc.validation",
                                      velo_executor_validation VELO_EXECUTOR_VALIDATION_INIT);
  if (read.state_size < 1 || read.state_size > most_state)
    fail(VELO_ERR_ARGUMENT, "desc.validation.state_size", core::concat("1 to ", most_state),
         core::number(read.state_size));
  const std::pair<const char*, bool> needed[] = {
      {"desc.validation.measure", read.measure != nullptr},
      {"desc.validation.decide", read.decide != nullptr},
      {"desc.validation.step", read.step != nullptr},
      {"desc.validation.rollback", read.rollback != nullptr}};
  for (const auto& [field, is_given] : needed)
    if (!is_given) fail(VELO_ERR_NULL, field, "a function", "NULL");
  return read;
}

// Resolves an executor, and marks the object behind velo's own link as in use.
sched::executor& in_use(velo_executor handle) {
  auto& found = core::use<sched::executor>(handle, "executor");
  found.note_link();
  return found;
}

// Calls work(executor, stream) if both belong to the same context.
template <class Work>
velo_status together(const char* function, velo_stream stream, velo_executor executor, Work work) {
  return core::guard(function, [&] {
    auto& on = core::use<core::stream>(stream, "stream");
    auto& found = in_use(executor);
    if (&on.owner() != &found.owner())
      fail(VELO_ERR_ARGUMENT, "stream", "a stream of the executor's context",
           "one of another context");
    if (!on.is_inline()) on.owner().require_can_wait("stream");
    work(found, on);
  });
}

}  // namespace

extern "C" {

velo_status velo_mailbox_create(int32_t ranks, int64_t timeout_ns, velo_mailbox* mailbox) {
  return core::guard("velo_mailbox_create", [&] {
    capi::required(mailbox, "mailbox");
    if (ranks < 1 || ranks > sched::mailbox::most_ranks)
      fail(VELO_ERR_ARGUMENT, "ranks", text("1 to %d", sched::mailbox::most_ranks),
           text("%d", ranks));
    if (timeout_ns < 1)
      fail(VELO_ERR_ARGUMENT, "timeout_ns", "1 or more", core::number(timeout_ns));
    *mailbox = core::handle_of(core::make_object<sched::mailbox>(nullptr, ranks, timeout_ns));
  });
}

void velo_mailbox_destroy(velo_mailbox mailbox) {
  capi::destroy<sched::mailbox>("velo_mailbox_destroy", mailbox, "mailbox");
}

velo_status velo_mailbox_get_link(velo_mailbox mailbox, int32_t rank, velo_link* link) {
  return core::guard("velo_mailbox_get_link", [&] {
    auto& from = core::use<sched::mailbox>(mailbox, "mailbox");
    if (rank < 0 || rank >= from.ranks())
      fail(VELO_ERR_ARGUMENT, "rank", text("that of one of %d ranks", from.ranks()),
           text("%d", rank));
    capi::write_struct(link, link_size, "link", from.link(rank));
  });
}

velo_status velo_group_get_link(velo_group group, velo_link* link) {
  return core::guard("velo_group_get_link", [&] {
    capi::write_struct(link, link_size, "link",
                       sched::link_over(core::use<comm::group>(group, "group")));
  });
}

velo_status velo_executor_create(velo_context context, velo_schedule schedule,
                                 const velo_executor_desc* desc, velo_executor* executor) {
  return core::guard("velo_executor_create", [&] {
    auto& owner = core::use<core::context>(context, "context");
    auto& of = core::use<sched::schedule_object>(schedule, "schedule");
    const velo_executor_desc given =
        capi::read_struct(desc, desc_size, "desc", velo_executor_desc VELO_EXECUTOR_DESC_INIT);
    capi::required(executor, "executor");
    const std::int32_t ranks = of.value().sizes().ranks;
    if (given.rank < 0 || given.rank >= ranks)
      fail(VELO_ERR_ARGUMENT, "desc.rank", text("that of one of %d ranks", ranks),
           text("%d", given.rank));
    if ((given.flags & ~std::uint32_t{VELO_EXECUTOR_RECORD}) != 0)
      fail(VELO_ERR_ARGUMENT, "desc.flags", "bits of VELO_EXECUTOR_*", text("%u", given.flags));
    velo_executor_validation validation = VELO_EXECUTOR_VALIDATION_INIT;
    if (given.validation != nullptr) validation = read_validation(given.validation);
    *executor = core::handle_of(core::make_object<sched::executor>(
        &owner, owner, of.shared(), given, read_link(given.link, ranks),
        given.validation == nullptr ? nullptr : &validation));
  });
}

void velo_executor_destroy(velo_executor executor) {
  capi::destroy<sched::executor>("velo_executor_destroy", executor, "executor",
                                 [](sched::executor& given) { given.require_idle(); });
}

velo_status velo_executor_run(velo_stream stream, velo_executor executor) {
  return together("velo_executor_run", stream, executor,
                  [](sched::executor& found, core::stream& on) { found.run(on); });
}

velo_status velo_executor_settle(velo_stream stream, velo_executor executor) {
  return together("velo_executor_settle", stream, executor,
                  [](sched::executor& found, core::stream& on) { found.settle(on); });
}

velo_status velo_executor_get_stats(velo_executor executor, velo_executor_stats* stats) {
  return core::guard("velo_executor_get_stats", [&] {
    const auto& of = in_use(executor);
    capi::write_struct(stats, stats_size, "stats", of.stats());
  });
}

velo_status velo_executor_cancel(velo_executor executor) {
  return core::guard("velo_executor_cancel", [&] { in_use(executor).cancel(); });
}

velo_status velo_executor_get_timeline(velo_executor executor, velo_timeline* timeline) {
  return core::guard("velo_executor_get_timeline", [&] {
    auto& from = in_use(executor);
    capi::required(timeline, "timeline");
    *timeline = core::handle_of(core::make_object<sched::timeline>(nullptr, from.gather()));
  });
}
}
