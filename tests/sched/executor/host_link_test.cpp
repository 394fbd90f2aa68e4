// Links of a host that break their contract: the failure names the function that did.
#include <cstdlib>

#include "tests/context.hpp"
#include "tests/sched/executor/team.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

// A mailbox's link that lends memory aligned 4 bytes off.
struct crooked_link {
  velo_link inner;
  int outstanding = 0;

  velo_link link() {
    velo_link made = inner;
    made.user = this;
    made.send = [](void* user, int32_t to, const void* bytes, uint64_t size) {
      return of(user).inner.send(of(user).inner.user, to, bytes, size);
    };
    made.receive = [](void* user, int32_t from, void* bytes, uint64_t size) {
      return of(user).inner.receive(of(user).inner.user, from, bytes, size);
    };
    made.abort = [](void* user, const char* why) {
      of(user).inner.abort(of(user).inner.user, why);
    };
    made.borrow = [](void* user, int32_t from, uint64_t size, void** bytes) {
      auto* const memory = static_cast<char*>(std::aligned_alloc(64, (size + 127) / 64 * 64));
      const velo_status status =
          of(user).inner.receive(of(user).inner.user, from, memory + 4, size);
      if (status != VELO_OK) return std::free(memory), status;
      ++of(user).outstanding;
      *bytes = memory + 4;
      return status;
    };
    made.give_back = [](void* user, void* bytes) {
      --of(user).outstanding;
      std::free(static_cast<char*>(bytes) - 4);
    };
    return made;
  }
  static crooked_link& of(void* user) { return *static_cast<crooked_link*>(user); }
};

}  // namespace

TEST_CASE("a link that fails by itself is not explained by a failure from before") {
  const live_context context;
  velo_link link = VELO_LINK_INIT;
  link.send = [](void*, int32_t, const void*, uint64_t) -> velo_status {
    return VELO_ERR_ARGUMENT;
  };
  link.receive = [](void*, int32_t, void*, uint64_t) -> velo_status { return VELO_ERR_ARGUMENT; };
  velo_executor_desc desc = VELO_EXECUTOR_DESC_INIT;
  desc.rank = 1;
  desc.link = &link;
  desc.forward = desc.backward = [](void*, velo_executor_call*) -> velo_status { return VELO_OK; };
  const live_schedule schedule(VELO_SCHEDULE_1F1B, {2, 2});
  velo_executor executor;
  REQUIRE(velo_executor_create(context, schedule, &desc, &executor) == VELO_OK);

  REQUIRE(velo_config_set(context, "threads", "many") == VELO_ERR_ARGUMENT);
  CHECK(velo_executor_run(context.inline_stream(), executor) == VELO_ERR_FOREIGN);
  const call_record info = last_record();
  CHECK(info.argument == "link.receive");
  CHECK(info.got == "VELO_ERR_ARGUMENT (4) from the link to rank 0");
  CHECK(info.cause.empty());

  velo_executor_destroy(executor);
}

TEST_CASE("memory that a link lends beside its alignment is refused, and given back") {
  crooked_link crooked[2];
  velo_link links[2];
  team all(schedule_of(VELO_SCHEDULE_1F1B, {2, 4}), 0, 20 * second, by::mailbox,
           [&](std::size_t rank, velo_executor_desc& desc) {
             crooked[rank].inner = *desc.link;
             links[rank] = crooked[rank].link();
             desc.link = &links[rank];
           });
  all.run();
  INFO(all.errors[1]);
  CHECK(all.status[1] == VELO_ERR_FOREIGN);
  CHECK(all.errors[1].find("link.borrow: expected memory aligned to 64 bytes") !=
        std::string::npos);
  CHECK(all.status[0] == VELO_ERR_PEER);
  for (const crooked_link& one : crooked) CHECK(one.outstanding == 0);
}
