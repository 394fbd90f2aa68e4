// Started sends and borrowed memory of a group's link: the order of messages, the lifetime of their
// bytes, and older structs of the host.
#include <atomic>
#include <cstring>
#include <thread>

#include "comm/ranks.hpp"
#include "tests/refusals.hpp"
#include "tests/sched/executor/team.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

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
  // Returns nullptr also after a failure; the next call then fails, too.
  char* borrow(int rank, std::size_t size) const {
    void* bytes = nullptr;
    links[rank].borrow(links[rank].user, 1 - rank, size, &bytes);
    return static_cast<char*>(bytes);
  }
  void give_back(int rank, char* bytes) const { links[rank].give_back(links[rank].user, bytes); }

  const local_ranks ranks;
  velo_link links[2];
};

}  // namespace

TEST_CASE("ranks that start sends to each other receive before these are finished") {
  // More messages than fit between two ranks, in mapped memory or beyond it.
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
    // Two messages find room and the third does not. Once the first is returned, the fourth gets
    // its memory.
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

TEST_CASE("a rank that waits for a started send to end learns that it will not") {
  const two_ranks two(small_buffer, 100);
  const std::vector<call_record> all = two.ranks.run([&](int rank) {
    if (rank == 1) return velo_status{VELO_OK};
    const std::vector<char> long_one = text_of(0, 3000000);
    const velo_status done = two.start(0, long_one);
    return done == VELO_OK ? two.finish(0) : done;
  });
  CHECK(all[0].code == VELO_ERR_PEER);
  CHECK(all[0].rank == 1);
}

TEST_CASE("a borrow of another size than was sent is refused") {
  const two_ranks two(small_buffer);
  const std::vector<call_record> all = two.ranks.run([&](int rank) {
    const std::vector<char> mine = text_of(0, 100000);
    if (rank == 0) return two.start(0, mine);
    void* bytes = nullptr;
    return two.links[1].borrow(two.links[1].user, 0, 99999, &bytes);
  });
  CHECK(all[0].code == VELO_OK);
  CHECK(all[1].code == VELO_ERR_PEER);
}

TEST_CASE("of a link no more is written than the host's struct has") {
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
  const live_schedule of(VELO_SCHEDULE_1F1B, {2, 2});
  const auto create = [&](const velo_link& link) {
    velo_executor_desc desc = VELO_EXECUTOR_DESC_INIT;
    desc.link = &link;
    desc.forward = desc.backward = &act;
    velo_executor made = nullptr;
    const velo_status status = velo_executor_create(two.ranks.context(0), of, &desc, &made);
    CHECK(made == nullptr);
    return status;
  };
  check_refusals(
      two.links[0], create,
      {{[](auto& link) { link.finish = nullptr; }, VELO_ERR_NULL, "desc.link.finish"},
       {[](auto& link) { link.abort = nullptr; }, VELO_ERR_NULL, "desc.link.abort"},
       {[](auto& link) { link.give_back = nullptr; }, VELO_ERR_NULL, "desc.link.give_back"}});
}
