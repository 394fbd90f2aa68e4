// Executors of all ranks of a schedule, on threads of the test, over a mailbox or over a group.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "tests/record.hpp"
#include "tests/sched/executor/rank_model.hpp"
#include "tests/sched/schedules.hpp"
#include "tests/structs.hpp"
#include "tests/threads.hpp"

namespace velo::testing {

constexpr std::int64_t second = 1000000000;
constexpr std::uint64_t small_buffer = 8192;  // of a group: each message heap has 256 KiB
constexpr std::uint64_t old_link_size = offsetof(velo_link, start_send);

inline std::string last_error() {
  char sentence[1024];
  velo_error_text(sentence, sizeof sentence, nullptr);
  return sentence;
}

inline velo_schedule schedule_of(velo_schedule_kind kind, const sizes& of) {
  return live_schedule(kind, of).release();
}
inline velo_schedule schedule_of(const std::string& rows) {
  return live_schedule(rows).release();
}

enum class by { mailbox, group };

// All ranks of a schedule, each with a context, on a thread of its own.
class team {
 public:
  // adjust: of a rank's executor, before it is made. buffer: of the group, 0 = as it comes.
  using adjust = std::function<void(std::size_t rank, velo_executor_desc& desc)>;
  explicit team(velo_schedule of, std::uint32_t flags = 0, std::int64_t timeout_ns = 20 * second,
                by way = by::mailbox, const adjust& change = nullptr, std::uint64_t buffer = 0)
      : schedule_(of) {
    velo_schedule_info info = VELO_SCHEDULE_INFO_INIT;
    REQUIRE(velo_schedule_get_info(of, &info) == VELO_OK);
    const auto ranks = static_cast<std::size_t>(info.ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const velo_context_desc context = context_desc(1);
      contexts.emplace_back();
      REQUIRE(velo_context_create(&context, &contexts.back()) == VELO_OK);
    }
    if (way == by::mailbox) {
      REQUIRE(velo_mailbox_create(info.ranks, timeout_ns, &mailbox_) == VELO_OK);
    } else {
      groups_.resize(ranks);
      velo_group_desc desc = VELO_GROUP_DESC_INIT;
      desc.timeout_ns = timeout_ns;
      if (buffer > 0) desc.buffer = buffer;
      REQUIRE(velo_group_create_local(contexts.data(), info.ranks, &desc, groups_.data()) ==
              VELO_OK);
    }
    models.resize(ranks);
    for (std::int32_t rank = 0; rank < info.ranks; ++rank) {
      models[rank].stages = info.stages;
      models[rank].chain = info.kind == VELO_SCHEDULE_DUALPIPE ? info.stages / 2 : info.stages;
      models[rank].wrong = &wrong;
      velo_link link = VELO_LINK_INIT;
      if (way == by::mailbox)
        REQUIRE(velo_mailbox_get_link(mailbox_, rank, &link) == VELO_OK);
      else
        REQUIRE(velo_group_get_link(groups_[static_cast<std::size_t>(rank)], &link) == VELO_OK);
      velo_executor_desc desc = VELO_EXECUTOR_DESC_INIT;
      desc.rank = rank;
      desc.flags = flags;
      desc.link = &link;
      desc.user = &models[rank];
      desc.forward = desc.input = desc.weight = desc.backward = desc.other = &act;
      desc.released = &count_released;
      if (change) change(static_cast<std::size_t>(rank), desc);
      executors.emplace_back();
      REQUIRE(velo_executor_create(contexts[static_cast<std::size_t>(rank)], of, &desc,
                                   &executors.back()) == VELO_OK);
    }
    velo_context_stats stats = VELO_CONTEXT_STATS_INIT;
    REQUIRE(velo_context_get_stats(contexts[0], &stats) == VELO_OK);
    bytes_before = stats.bytes_allocated;
  }
  ~team() {
    for (velo_executor one : executors) velo_executor_destroy(one);
    for (velo_group one : groups_) velo_group_destroy(one);
    for (velo_context one : contexts) velo_context_destroy(one);
    velo_mailbox_destroy(mailbox_);
    velo_schedule_destroy(schedule_);
  }
  team(const team&) = delete;
  team& operator=(const team&) = delete;

  void run(bool queued = false) { on_all(&velo_executor_run, queued); }
  void settle() { on_all(&velo_executor_settle, false); }

  void on_all(velo_status (*work)(velo_stream, velo_executor), bool queued) {
    status.assign(executors.size(), VELO_OK);
    errors.assign(executors.size(), "");
    culprits.assign(executors.size(), -1);
    on_threads(static_cast<int>(executors.size()), [this, queued, work](std::size_t rank) {
      velo_stream stream = nullptr;
      if (queued)
        velo_stream_create(contexts[rank], &stream);
      else
        velo_context_stream(contexts[rank], &stream);
      status[rank] = work(stream, executors[rank]);
      culprits[rank] = last_record().rank;
      errors[rank] = last_error();
      if (queued) velo_stream_destroy(stream);
    });
  }

  std::vector<rank_model> models;
  std::vector<velo_context> contexts;
  std::vector<velo_executor> executors;
  std::vector<velo_status> status;
  std::vector<std::string> errors;
  std::vector<std::int32_t> culprits;
  std::atomic<int> wrong{0};
  std::uint64_t bytes_before = 0;  // of a context, with an executor that never ran

 private:
  velo_schedule schedule_;
  velo_mailbox mailbox_ = nullptr;
  std::vector<velo_group> groups_;
};

// Checks that a rank's run ended because of another rank, in these words.
inline void check_ended(const team& all, std::size_t rank, std::int32_t culprit,
                        const std::string& words) {
  INFO("rank " << rank << ": " << all.errors[rank]);
  CHECK(all.status[rank] == VELO_ERR_PEER);
  CHECK(all.culprits[rank] == culprit);
  CHECK(all.errors[rank].find(words) != std::string::npos);
}

inline void require_all_went_well(team& all) {
  CHECK(all.wrong == 0);
  for (std::size_t rank = 0; rank < all.executors.size(); ++rank) {
    INFO("rank " << rank << ": " << all.errors[rank]);
    CHECK(all.status[rank] == VELO_OK);
    CHECK(all.models[rank].held == all.models[rank].released);
  }
}

}  // namespace velo::testing
