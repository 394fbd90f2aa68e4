// Executors over links that start sends and lend received messages: over a group's link, over a
// host's own, and over one that does neither.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/sched/executor/team.hpp"
#include "tests/tensors.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

// A link that forwards to another and records its calls: s start_send, r receive or borrow, f
// finish.
struct watched_link {
  velo_link inner;
  std::string calls;
  std::function<void()> gives_back = nullptr;
  int outstanding = 0, borrowed = 0;  // now; ever
  std::atomic<bool> finishes{false};
  std::atomic<int> finished{0};

  // Waits until it has been in one call of finish for a while.
  void await_stuck() const {
    for (bool stuck = false; !stuck;) {
      const int before = finished;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      stuck = finishes && finished == before;
    }
  }

  velo_link link() {
    velo_link made = inner;
    made.user = this;
    made.send = [](void* user, int32_t to, const void* bytes, uint64_t size) {
      watched_link& me = of(user, 'S');
      return me.inner.send(me.inner.user, to, bytes, size);
    };
    made.receive = [](void* user, int32_t from, void* bytes, uint64_t size) {
      watched_link& me = of(user, 'r');
      return me.inner.receive(me.inner.user, from, bytes, size);
    };
    made.abort = [](void* user, const char* why) {
      const watched_link& me = *static_cast<watched_link*>(user);
      me.inner.abort(me.inner.user, why);
    };
    made.start_send = [](void* user, int32_t to, const void* bytes, uint64_t size) {
      watched_link& me = of(user, 's');
      return me.inner.start_send(me.inner.user, to, bytes, size);
    };
    made.finish = [](void* user) {
      watched_link& me = of(user, 'f');
      me.finishes = true;
      const velo_status status = me.inner.finish(me.inner.user);
      me.finishes = false;
      ++me.finished;
      return status;
    };
    made.borrow = [](void* user, int32_t from, uint64_t size, void** bytes) {
      watched_link& me = of(user, 'r');
      const velo_status status = me.inner.borrow(me.inner.user, from, size, bytes);
      if (*bytes != nullptr) ++me.outstanding, ++me.borrowed;
      return status;
    };
    made.give_back = [](void* user, void* bytes) {
      auto& me = *static_cast<watched_link*>(user);
      --me.outstanding;
      if (me.gives_back) me.gives_back();
      me.inner.give_back(me.inner.user, bytes);
    };
    return made;
  }
  static watched_link& of(void* user, char letter) {
    auto& me = *static_cast<watched_link*>(user);
    me.calls += letter;
    return me;
  }
};

// A team over a group, every rank's link watched.
struct watched_team {
  explicit watched_team(velo_schedule of, std::uint64_t buffer = 0)
      : all(
            of, 0, 20 * second, by::group,
            [this](std::size_t rank, velo_executor_desc& desc) {
              watched[rank].inner = *desc.link;
              links[rank] = watched[rank].link();
              desc.link = &links[rank];
            },
            buffer) {
    for (std::size_t rank = 0; rank < 2; ++rank)
      all.models[rank].before = [this, rank](const velo_executor_call&) {
        watched[rank].calls += 'c';
        return VELO_OK;
      };
  }
  watched_link watched[2];
  velo_link links[2];
  team all;
};

// A mailbox's link as a host might write one over its own transport: started sends leave at the
// latest moment, and borrowed memory is counted.
struct late_link {
  struct letter {
    std::int32_t to;
    const void* bytes;
    std::uint64_t size;
  };
  velo_link inner;
  std::vector<letter> started;
  const int* released = nullptr;
  int released_before = 0, released_too_soon = 0, outstanding = 0;

  velo_link link() {
    velo_link made = inner;
    made.user = this;
    made.flags = VELO_LINK_WAITS;
    made.send = [](void*, int32_t, const void*, uint64_t) -> velo_status { return VELO_ERR_STATE; };
    made.start_send = [](void* user, int32_t to, const void* bytes, uint64_t size) {
      auto& me = *static_cast<late_link*>(user);
      if (me.started.empty()) me.released_before = *me.released;
      me.started.push_back({to, bytes, size});
      return velo_status{VELO_OK};
    };
    made.finish = [](void* user) { return static_cast<late_link*>(user)->leave(); };
    made.receive = [](void* user, int32_t from, void* bytes, uint64_t size) {
      auto& me = *static_cast<late_link*>(user);
      const velo_status status = me.leave();
      return status != VELO_OK ? status : me.inner.receive(me.inner.user, from, bytes, size);
    };
    made.abort = [](void* user, const char* why) {
      const late_link& me = *static_cast<late_link*>(user);
      me.inner.abort(me.inner.user, why);
    };
    made.borrow = [](void* user, int32_t from, uint64_t size, void** bytes) {
      auto& me = *static_cast<late_link*>(user);
      velo_status status = me.leave();
      if (status != VELO_OK || size > 64) return status;  // of longer ones it has none
      void* memory = std::aligned_alloc(64, 64);
      status = me.inner.receive(me.inner.user, from, memory, size);
      me.outstanding += status == VELO_OK ? 1 : 0;
      if (status == VELO_OK)
        *bytes = memory;
      else
        std::free(memory);
      return status;
    };
    made.give_back = [](void* user, void* bytes) {
      --static_cast<late_link*>(user)->outstanding;
      std::free(bytes);
    };
    return made;
  }

 private:
  velo_status leave() {
    if (!started.empty()) released_too_soon += *released - released_before;
    for (const letter& one : started)
      if (const velo_status status = inner.send(inner.user, one.to, one.bytes, one.size);
          status != VELO_OK)
        return status;
    started.clear();
    return VELO_OK;
  }
};

}  // namespace
TEST_CASE(
    "over a group what a rank sends is under way while it receives, and done when it computes") {
  watched_team two(schedule_of(VELO_SCHEDULE_1F1B, {2, 8}));
  two.all.run();
  require_all_went_well(two.all);
  for (const watched_link& one : two.watched) {
    INFO(one.calls);
    CHECK(one.calls.find('S') == std::string::npos);
    CHECK(one.calls.find("rs") == std::string::npos);  // where both stand together
    CHECK(one.calls.find("sr") != std::string::npos);
    bool under_way = false;
    for (const char letter : one.calls) {
      if (letter == 's') under_way = true;
      if (letter == 'f') under_way = false;
      CHECK_FALSE((letter == 'c' && under_way));
    }
    CHECK_FALSE(under_way);
  }
}

TEST_CASE("messages longer than what can be borrowed, and more of them, arrive as others do") {
  const std::pair<velo_schedule_kind, sizes> kinds[] = {{VELO_SCHEDULE_GPIPE, {3, 9}},
                                                        {VELO_SCHEDULE_DUALPIPE, {4, 8}}};
  for (const auto& [kind, of] : kinds) {
    INFO("kind " << kind);
    team all(schedule_of(kind, of), 0, 20 * second, by::group, nullptr, small_buffer);
    for (rank_model& one : all.models) one.scale = 1 << 13;  // 64 KiB, later 128 and 192
    for (const bool queued : {false, true}) {
      all.run(queued);
      require_all_went_well(all);
    }
  }
}

TEST_CASE("what a run leaves over is given back before it returns, and it can be run again") {
  watched_team two(schedule_of("0F0,0F1,0F2\n1F0,1F1,1F2\n"));
  for (rank_model& one : two.all.models) one.scale = 1 << 13;  // 64 KiB
  for (int round = 0; round < 2; ++round) {
    two.all.run();
    require_all_went_well(two.all);
    CHECK(two.watched[1].borrowed > 0);
    CHECK(two.watched[1].outstanding == 0);
  }
}

TEST_CASE("what queued work reads is given back behind it") {
  watched_team two(schedule_of(VELO_SCHEDULE_1F1B, {2, 4}));
  for (rank_model& one : two.all.models) one.scale = 1 << 13;
  velo_event read = nullptr;
  REQUIRE(velo_event_create(two.all.contexts[1], &read) == VELO_OK);
  int queued = 0, too_soon = 0;
  const float_tensor x({1 << 22}, 1);
  velo_add_args sum = VELO_ADD_ARGS_INIT;
  sum.a = sum.b = sum.y = &x.view;
  two.all.models[1].before = [&](const velo_executor_call& call) -> velo_status {
    if (call.action.kind != VELO_ACTION_B) return VELO_OK;
    ++queued;
    for (int i = 0; i < 4; ++i)
      if (const velo_status status = velo_add(call.stream, &sum); status != VELO_OK) return status;
    return velo_event_record(read, call.stream);
  };
  two.watched[1].gives_back = [&] {
    int32_t done = 0;
    velo_event_query(read, &done);
    too_soon += done == 0 ? 1 : 0;
  };
  two.all.run(true);
  require_all_went_well(two.all);
  CHECK(queued == 4);
  CHECK(two.watched[1].borrowed > 0);
  CHECK(too_soon == 0);
  velo_event_destroy(read);
}

TEST_CASE("a failure while a send is under way is the first cause on all ranks") {
  watched_team two(schedule_of(VELO_SCHEDULE_GPIPE, {2, 8}), small_buffer);
  for (rank_model& one : two.all.models) one.scale = 1 << 16;
  two.all.models[1].before = [&](const velo_executor_call& call) {
    if (call.action.kind != VELO_ACTION_F || call.action.microbatch != 2) return VELO_OK;
    two.watched[0].await_stuck();
    return VELO_ERR_IO;
  };
  two.all.run();
  CHECK(two.all.status[1] == VELO_ERR_FOREIGN);
  check_ended(two.all, 0, 1, "VELO_ERR_IO (33) from 1F2 of rank 1");
  CHECK(two.all.models[0].released < two.all.models[0].held);  // what was under way is the host's
}

TEST_CASE("a run is cancelled while a send is under way") {
  watched_team two(schedule_of(VELO_SCHEDULE_GPIPE, {2, 8}), small_buffer);
  for (rank_model& one : two.all.models) one.scale = 1 << 16;
  std::atomic<bool> cancelled{false};
  two.all.models[1].before = [&](const velo_executor_call& call) {
    if (call.action.microbatch == 2)
      while (!cancelled) std::this_thread::yield();
    return VELO_OK;
  };
  std::thread canceller([&] {
    two.watched[0].await_stuck();
    CHECK(velo_executor_cancel(two.all.executors[0]) == VELO_OK);
    cancelled = true;
  });
  two.all.run();
  canceller.join();
  for (const std::size_t rank : {0, 1}) check_ended(two.all, rank, 0, "cancel");
}

TEST_CASE("a host's link may start sends as late as it likes, and lend what it likes") {
  for (const velo_schedule_kind kind : {VELO_SCHEDULE_1F1B, VELO_SCHEDULE_ZBV}) {
    late_link late[3];
    velo_link links[3];
    team all(schedule_of(kind, {3, 9}), 0, 20 * second, by::mailbox,
             [&](std::size_t rank, velo_executor_desc& desc) {
               late[rank].inner = *desc.link;
               late[rank].released = &static_cast<rank_model*>(desc.user)->released;
               links[rank] = late[rank].link();
               desc.link = &links[rank];
             });
    for (rank_model& one : all.models) one.scale = 4;  // 32 bytes, later up to 96
    all.run();
    require_all_went_well(all);
    for (const late_link& one : late) {
      CHECK(one.released_too_soon == 0);
      CHECK(one.outstanding == 0);
      CHECK(one.started.empty());
    }
  }
}

TEST_CASE("hosts that know no started sends are served as before, beside others that do") {
  for (const std::size_t newer : {0, 1, 2}) {  // how many of two ranks
    velo_link links[2];
    team all(schedule_of(VELO_SCHEDULE_1F1B, {2, 8}), 0, 20 * second, by::group,
             [&](std::size_t rank, velo_executor_desc& desc) {
               if (rank < newer) return;
               std::memset(&links[rank], 0x5a, sizeof links[rank]);  // what lies behind theirs
               std::memcpy(&links[rank], desc.link, old_link_size);
               links[rank].struct_size = old_link_size;
               desc.link = &links[rank];
             });
    for (rank_model& one : all.models) one.scale = 1 << 15;
    all.run();
    require_all_went_well(all);
  }
}
