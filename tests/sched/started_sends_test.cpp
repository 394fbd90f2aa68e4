// Links that start sends and lend what is received: what a group's does, and what an executor asks of any.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "comm/ranks.hpp"
#include "team.hpp"

using namespace velo;
using namespace velo::test;

namespace {

constexpr std::uint64_t small_buffer = 8192;  // so that a rank lends 256 KiB
constexpr std::uint64_t old_link_size = 40;   // of a velo_link without start_send

velo_link link_of(velo_group group) {
  velo_link made = VELO_LINK_INIT;
  REQUIRE(velo_group_get_link(group, &made) == VELO_OK);
  return made;
}

std::vector<char> text_of(int seed, std::size_t size) {
  std::vector<char> made(size);
  for (std::size_t i = 0; i < size; ++i) made[i] = static_cast<char>(seed * 31 + i * 7 + i / 256);
  return made;
}

// Two ranks of a group, each with its link.
struct two_ranks {
  explicit two_ranks(std::uint64_t buffer, std::int64_t timeout_ms = 20000)
      : ranks(2, desc_with(buffer, timeout_ms)) {
    for (int rank = 0; rank < 2; ++rank) links[rank] = link_of(ranks.group(rank));
  }
  static velo_group_desc desc_with(std::uint64_t buffer, std::int64_t timeout_ms) {
    velo_group_desc desc = group_desc(timeout_ms);
    desc.buffer = buffer;
    return desc;
  }
  velo_status start(int rank, const std::vector<char>& bytes) const {
    return links[rank].start_send(links[rank].user, 1 - rank, bytes.data(), bytes.size());
  }
  velo_status finish(int rank) const { return links[rank].finish(links[rank].user); }
  velo_status receive(int rank, std::vector<char>& bytes) const {
    return links[rank].receive(links[rank].user, 1 - rank, bytes.data(), bytes.size());
  }
  // nullptr also where it fails: what comes next fails, too.
  char* borrow(int rank, std::size_t size) const {
    void* bytes = nullptr;
    links[rank].borrow(links[rank].user, 1 - rank, size, &bytes);
    return static_cast<char*>(bytes);
  }
  void give_back(int rank, char* bytes) const { links[rank].give_back(links[rank].user, bytes); }

  const local_ranks ranks;
  velo_link links[2];
};

// A link as another, whose calls are written down: s start_send, r receive or borrow, f finish.
struct watched_link {
  velo_link inner;
  std::string said;
  std::function<void()> gives_back = nullptr;
  int lent = 0;
  std::atomic<bool> finishes{false};
  std::atomic<int> finished{0};

  // Until it has been in one call of finish for a while.
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
      me.lent += *bytes != nullptr ? 1 : 0;
      return status;
    };
    made.give_back = [](void* user, void* bytes) {
      auto& me = *static_cast<watched_link*>(user);
      --me.lent;
      if (me.gives_back) me.gives_back();
      me.inner.give_back(me.inner.user, bytes);
    };
    return made;
  }
  static watched_link& of(void* user, char what) {
    auto& me = *static_cast<watched_link*>(user);
    me.said += what;
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
        watched[rank].said += 'c';
        return VELO_OK;
      };
  }
  watched_link watched[2];
  velo_link links[2];
  team all;
};

// A mailbox's link as a host might write one over its own transport: what is started leaves at the
// latest moment, and what is lent is memory that it counts.
struct late_link {
  struct letter {
    std::int32_t to;
    const void* bytes;
    std::uint64_t size;
  };
  velo_link inner;
  std::vector<letter> started;
  const int* released = nullptr;
  int released_before = 0, released_too_soon = 0, lent = 0;

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
      me.lent += status == VELO_OK ? 1 : 0;
      if (status == VELO_OK)
        *bytes = memory;
      else
        std::free(memory);
      return status;
    };
    made.give_back = [](void* user, void* bytes) {
      --static_cast<late_link*>(user)->lent;
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

TEST_CASE("ranks that start sends to each other receive before these are finished") {
  // More than lies between two ranks, in what they lend or beyond.
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{100}, std::size_t{200000}, std::size_t{3000000}}) {
    INFO(size << " bytes");
    const two_ranks two(small_buffer);
    std::atomic<int> wrong{0};
    two.ranks.require([&](int rank) {
      const std::vector<char> first = text_of(rank, size), second = text_of(rank + 2, size / 2);
      velo_status done = two.start(rank, first);
      if (done == VELO_OK) done = two.start(rank, second);
      std::vector<char> got(size);
      if (done == VELO_OK) done = two.receive(rank, got);
      wrong += got != text_of(1 - rank, size);
      got.resize(size / 2);
      if (done == VELO_OK) done = two.receive(rank, got);
      wrong += got != text_of(3 - rank, size / 2);
      return done == VELO_OK ? two.finish(rank) : done;
    });
    CHECK(wrong == 0);
  }
}

TEST_CASE("a message that is started keeps its place before later ones") {
  const two_ranks two(small_buffer);
  std::atomic<int> wrong{0};
  two.ranks.require([&](int rank) {
    const std::vector<char> first = text_of(1, 700000), second = text_of(2, 700000);
    if (rank == 0) {
      velo_status done = two.start(0, first);
      if (done == VELO_OK) done = two.links[0].send(two.links[0].user, 1, second.data(), 700000);
      return done == VELO_OK ? two.finish(0) : done;
    }
    std::vector<char> got(700000);
    velo_status done = two.receive(1, got);
    wrong += got != first;
    if (done == VELO_OK) done = two.receive(1, got);
    wrong += got != second;
    return done;
  });
  CHECK(wrong == 0);
}

TEST_CASE("what finds room is finished before the other rank receives it") {
  const two_ranks two(small_buffer);
  std::atomic<bool> finished{false};
  std::atomic<int> wrong{0};
  two.ranks.require([&](int rank) {
    const std::vector<char> parts[] = {text_of(0, 24), text_of(1, 64), text_of(2, 100000),
                                       text_of(3, 100000)};
    velo_status done = VELO_OK;
    if (rank == 0) {
      for (const std::vector<char>& one : parts)
        if (done == VELO_OK) done = two.start(0, one);
      if (done == VELO_OK) done = two.finish(0);
      finished = true;  // also where it failed
      return done;
    }
    while (!finished) std::this_thread::yield();
    for (const std::vector<char>& one : parts) {
      std::vector<char> got(one.size());
      if (done == VELO_OK) done = two.receive(1, got);
      wrong += got != one;
    }
    return done;
  });
  CHECK(wrong == 0);
}

TEST_CASE("what is borrowed stays until it is given back, and then serves others") {
  constexpr std::size_t size = 100000;
  const two_ranks two(small_buffer);
  std::atomic<bool> is_back{false};
  std::atomic<int> wrong{0};
  const auto holds = [&](const char* bytes, int message) {
    return bytes != nullptr && std::memcmp(bytes, text_of(message, size).data(), size) == 0;
  };
  two.ranks.require([&](int rank) {
    // Two find room, the third does not; once the first is back, the fourth lies where it did.
    if (rank == 0) {
      for (int i = 0; i < 4; ++i) {
        while (i == 3 && !is_back) std::this_thread::yield();
        const std::vector<char> mine = text_of(i, size);
        velo_status done = two.start(0, mine);
        if (done == VELO_OK) done = two.finish(0);
        if (done != VELO_OK) return done;
      }
      return velo_status{VELO_OK};
    }
    char* const first = two.borrow(1, size);
    char* const second = two.borrow(1, size);
    wrong += !holds(first, 0) + !holds(second, 1) + (two.borrow(1, size) != nullptr);
    wrong += reinterpret_cast<std::uintptr_t>(first) % 64 != 0;
    std::vector<char> third(size);
    const velo_status done = two.receive(1, third);
    wrong += third != text_of(2, size);
    if (done != VELO_OK || first == nullptr || second == nullptr) return done;
    two.give_back(1, first);
    is_back = true;
    char* const fourth = two.borrow(1, size);
    wrong += fourth != first;
    wrong += !holds(fourth, 3) + !holds(second, 1);
    two.give_back(1, second);
    if (fourth != nullptr) two.give_back(1, fourth);
    return done;
  });
  CHECK(wrong == 0);
}

TEST_CASE("who waits for a started send to end is told that it will not") {
  const two_ranks two(small_buffer, 100);
  const std::vector<said> all = two.ranks.run([&](int rank) {
    if (rank == 1) return velo_status{VELO_OK};
    const std::vector<char> long_one = text_of(0, 3000000);
    const velo_status done = two.start(0, long_one);
    return done == VELO_OK ? two.finish(0) : done;
  });
  CHECK(all[0].code == VELO_ERR_PEER);
  CHECK(all[0].rank == 1);
}

TEST_CASE("bytes that were not sent as many are not lent") {
  const two_ranks two(small_buffer);
  const std::vector<said> all = two.ranks.run([&](int rank) {
    const std::vector<char> mine = text_of(0, 100000);
    if (rank == 0) return two.start(0, mine);
    void* bytes = nullptr;
    return two.links[1].borrow(two.links[1].user, 0, 99999, &bytes);
  });
  CHECK(all[0].code == VELO_OK);
  CHECK(all[1].code == VELO_ERR_PEER);
}

TEST_CASE(
    "over a group what a rank sends is under way while it receives, and done when it computes") {
  watched_team two(schedule_of(VELO_SCHEDULE_1F1B, {2, 8}));
  two.all.run();
  require_all_went_well(two.all);
  for (const watched_link& one : two.watched) {
    INFO(one.said);
    CHECK(one.said.find('S') == std::string::npos);
    CHECK(one.said.find("rs") == std::string::npos);  // where both stand together
    CHECK(one.said.find("sr") != std::string::npos);
    bool under_way = false;
    for (const char what : one.said) {
      if (what == 's') under_way = true;
      if (what == 'f') under_way = false;
      CHECK_FALSE((what == 'c' && under_way));
    }
    CHECK_FALSE(under_way);
  }
}

TEST_CASE("messages longer than what is lent, and more of them, arrive as others do") {
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
    CHECK(two.watched[1].said.find('r') != std::string::npos);
    CHECK(two.watched[1].lent == 0);
  }
}

TEST_CASE("what queued work reads is given back behind it") {
  watched_team two(schedule_of(VELO_SCHEDULE_1F1B, {2, 4}));
  for (rank_model& one : two.all.models) one.scale = 1 << 13;
  velo_event read = nullptr;
  REQUIRE(velo_event_create(two.all.contexts[1], &read) == VELO_OK);
  int queued = 0, too_soon = 0;
  std::vector<float> x(1 << 22, 1.0f);
  const std::int64_t count = 1 << 22;
  velo_tensor all{};
  all.data = x.data();
  all.device.type = VELO_DEVICE_CPU;
  all.ndim = 1;
  all.dtype = {VELO_DTYPE_FLOAT, 32, 1};
  all.shape = &count;
  velo_add_args sum = VELO_ADD_ARGS_INIT;
  sum.a = sum.b = &all;
  sum.y = &all;
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
  INFO(two.all.errors[0]);
  CHECK(two.all.status[0] == VELO_ERR_PEER);
  CHECK(two.all.culprits[0] == 1);
  CHECK(two.all.errors[0].find("33 from 1F2 of rank 1") != std::string::npos);
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
  for (const std::size_t rank : {0, 1}) {
    INFO(two.all.errors[rank]);
    CHECK(two.all.status[rank] == VELO_ERR_PEER);
    CHECK(two.all.culprits[rank] == 0);
    CHECK(two.all.errors[rank].find("cancel") != std::string::npos);
  }
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
      CHECK(one.lent == 0);
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
  const two_ranks two(small_buffer);
  velo_link old;
  std::memset(&old, 0x5a, sizeof old);
  const velo_link before = old;
  old.struct_size = old_link_size;
  REQUIRE(velo_group_get_link(two.ranks.group(0), &old) == VELO_OK);
  CHECK(old.send == two.links[0].send);
  CHECK(old.struct_size == old_link_size);
  CHECK(std::memcmp(&old.start_send, &before.start_send, sizeof old - old_link_size) == 0);
}

TEST_CASE("functions of a link that make sense only together are refused by name") {
  const two_ranks two(small_buffer);
  velo_schedule of = schedule_of(VELO_SCHEDULE_1F1B, {2, 2});
  const auto refused = [&](velo_link link, const char* field) {
    velo_executor_desc desc = VELO_EXECUTOR_DESC_INIT;
    desc.link = &link;
    desc.forward = desc.backward = &act;
    velo_executor made = nullptr;
    CHECK(velo_executor_create(two.ranks.context(0), of, &desc, &made) == VELO_ERR_NULL);
    CHECK(last_error().find(field) != std::string::npos);
    CHECK(made == nullptr);
  };
  velo_link link = two.links[0];
  link.finish = nullptr;
  refused(link, "desc.link.finish");
  link = two.links[0];
  link.abort = nullptr;
  refused(link, "desc.link.abort");
  link = two.links[0];
  link.give_back = nullptr;
  refused(link, "desc.link.give_back");
  velo_schedule_destroy(of);
}
