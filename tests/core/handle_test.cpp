// Handles of other kinds, destroyed ones and reused slots are refused, each with what came; an
// owner destroys what it owns in the order of the kinds.
#include "core/handle/handle.hpp"

#include <catch2/catch.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/core/fails.hpp"
#include "tests/threads.hpp"

namespace velo::core {
namespace {

// Two kinds that no spec declares: a kind is an object, wherever it stands.
handle_kind crates("a crate", 2);
handle_kind seals("an old seal", 1);

std::vector<int> destroyed;  // the values of crates and seals, in the order in which they went

struct crate {
  explicit crate(int content, bool broken = false) : value(content) {
    ++count;
    if (broken) {
      --count;
      throw std::runtime_error("broken");
    }
  }
  ~crate() {
    --count;
    destroyed.push_back(value);
  }
  int value;
  static inline int count = 0;
};

struct seal {
  explicit seal(int number = -1) : value(number) {}
  ~seal() {
    if (value >= 0) destroyed.push_back(value);
  }
  int value;
};

}  // namespace

template <>
struct handle_traits<crate> {
  using handle = velo_pack;
  static constexpr handle_kind& kind = crates;
};
template <>
struct handle_traits<seal> {
  using handle = velo_closure;
  static constexpr handle_kind& kind = seals;
};

}  // namespace velo::core

using namespace velo::core;
using velo::testing::failure_of;
using velo::testing::on_threads;

TEST_CASE("a live handle gives its object") {
  crate& made = make_object<crate>(nullptr, 7);
  const velo_pack handle = handle_of(made);
  CHECK(&resolve<crate>(handle, "pack") == &made);
  CHECK(resolve<crate>(handle, "pack").value == 7);
  destroy_handle<crate>(handle, "pack");
  CHECK(crate::count == 0);
}

TEST_CASE("NULL, another kind and a destroyed handle are distinguished") {
  const velo_pack pack = handle_of(make_object<crate>(nullptr, 1));
  const velo_closure closure = handle_of(make_object<seal>(nullptr));

  CHECK_REFUSED(failure_of([] { resolve<crate>(nullptr, "pack"); }), VELO_ERR_NULL, "pack");

  const auto other =
      failure_of([&] { resolve<crate>(reinterpret_cast<velo_pack>(closure), "args.b"); });
  CHECK_REFUSED(other, VELO_ERR_HANDLE, "args.b");
  CHECK(other.expected == "a crate");
  CHECK(other.got == "an old seal");

  destroy_handle<crate>(pack, "pack");
  const auto gone = failure_of([&] { resolve<crate>(pack, "pack"); });
  CHECK(gone.code == VELO_ERR_HANDLE);
  CHECK(gone.got == "a destroyed crate");
  CHECK(failure_of([&] { destroy_handle<crate>(pack, "pack"); }).code == VELO_ERR_HANDLE);
  destroy_handle<seal>(closure, "closure");
}

TEST_CASE("a stale handle stays refused when its slot has a new tenant") {
  const velo_pack stale = handle_of(make_object<crate>(nullptr, 0));
  const slot_header* slot = slot_named(stale);
  destroy_handle<crate>(stale, "pack");
  int until_reuse = 0;
  bool reused = false;
  while (!reused) {
    const velo_pack next = handle_of(make_object<crate>(nullptr, 1));
    ++until_reuse;
    reused = slot_named(next) == slot;
    CHECK(next != stale);
    CHECK(failure_of([&] { resolve<crate>(stale, "pack"); }).code == VELO_ERR_HANDLE);
    destroy_handle<crate>(next, "pack");
    REQUIRE(until_reuse < 1000);
  }
  CHECK(until_reuse >= 16);  // first in, first out: the whole slab is used before the slot again
}

TEST_CASE("a constructor that throws gives its slot back") {
  CHECK_THROWS_AS(make_object<crate>(nullptr, 1, true), std::runtime_error);
  CHECK(crate::count == 0);
  const velo_pack after = handle_of(make_object<crate>(nullptr, 2));
  CHECK(resolve<crate>(after, "pack").value == 2);
  destroy_handle<crate>(after, "pack");
}

TEST_CASE("an owner's objects go together, others stay") {
  handle_owner mine, theirs;
  std::vector<velo_pack> packs;
  for (int i = 0; i < 40; ++i)
    packs.push_back(handle_of(make_object<crate>(i % 2 == 0 ? &mine : &theirs, i)));
  mine.destroy_owned();
  CHECK(crate::count == 20);
  for (int i = 0; i < 40; ++i) {
    if (i % 2 == 0) {
      CHECK(failure_of([&] { resolve<crate>(packs[static_cast<std::size_t>(i)], "pack"); }).code ==
            VELO_ERR_HANDLE);
    } else {
      CHECK(resolve<crate>(packs[static_cast<std::size_t>(i)], "pack").value == i);
    }
  }
  theirs.destroy_owned();
  CHECK(crate::count == 0);
}

TEST_CASE("an owner destroys kind by kind, the newest first, and each object once") {
  destroyed.clear();
  {
    handle_owner owner;
    std::vector<velo_pack> packs;
    for (int i = 0; i < 5; ++i) {
      packs.push_back(handle_of(make_object<crate>(&owner, i)));
      make_object<seal>(&owner, 10 + i);
    }
    // The first, the last and one between: every way of leaving the list.
    for (const std::size_t i : {2u, 0u, 4u}) destroy_handle<crate>(packs[i], "pack");
    CHECK(destroyed == std::vector<int>{2, 0, 4});
    make_object<crate>(&owner, 5);
  }
  CHECK(destroyed == std::vector<int>{2, 0, 4, 14, 13, 12, 11, 10, 5, 3, 1});
}

TEST_CASE("a handle of another copy of velo is distinguished from one of no velo") {
  alignas(64) slot_header fake[2] = {};
  const auto as_pack = [](slot_header* slot) { return reinterpret_cast<velo_pack>(slot); };
  const auto none = failure_of([&] { resolve<crate>(as_pack(&fake[0]), "pack"); });
  CHECK(none.code == VELO_ERR_HANDLE);
  CHECK(none.got == "no velo handle");
  const velo_pack real = handle_of(make_object<crate>(nullptr, 1));
  fake[1].magic = slot_named(real)->magic;
  const auto other = failure_of([&] { resolve<crate>(as_pack(&fake[1]), "pack"); });
  CHECK(other.code == VELO_ERR_HANDLE);
  CHECK(other.got == "a handle of another copy of velo");
  destroy_handle<crate>(real, "pack");
}

TEST_CASE("threads make and destroy handles at once without ever sharing a slot") {
  std::atomic<int> wrong{0};
  on_threads(4, [&wrong] {
    for (int i = 0; i < 2000; ++i) {
      const velo_closure a = handle_of(make_object<seal>(nullptr));
      const velo_closure b = handle_of(make_object<seal>(nullptr));
      if (a == b) ++wrong;
      destroy_handle<seal>(a, "closure");
      destroy_handle<seal>(b, "closure");
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("a destroyed handle stays refused however often its slot is used again") {
  const velo_closure stale = handle_of(make_object<seal>(nullptr));
  destroy_handle<seal>(stale, "closure");
  for (int pair = 0; pair < 3000; ++pair) {  // more than a slab's slots times a byte's generations
    destroy_handle<seal>(handle_of(make_object<seal>(nullptr)), "closure");
    if (live_slot(stale, seals) != nullptr) FAIL("revived after " << pair + 1 << " pairs");
  }
}

TEST_CASE("a slot whose generations are used up has no tenant any more") {
  const velo_closure first = handle_of(make_object<seal>(nullptr));
  slot_header* slot = slot_named(first);
  const auto with = [&](std::uint32_t generation) {
    return reinterpret_cast<velo_closure>(reinterpret_cast<std::uintptr_t>(slot) |
                                          std::uintptr_t{generation} << address_bits);
  };
  slot->tag.store(last_generation << 2 | 1u);
  const velo_closure last = with(last_generation);
  CHECK(&resolve<seal>(last, "closure") == object_in<seal>(slot));
  CHECK(handle_of(*object_in<seal>(slot)) == last);
  CHECK(reinterpret_cast<std::intptr_t>(last) > 0);
  destroy_handle<seal>(last, "closure");
  for (int pair = 0; pair < 200; ++pair) {
    const velo_closure next = handle_of(make_object<seal>(nullptr));
    REQUIRE(slot_named(next) != slot);
    destroy_handle<seal>(next, "closure");
  }
  for (const std::uint32_t generation : {0u, 1u, last_generation})
    CHECK(failure_of([&] { resolve<seal>(with(generation), "closure"); }).code == VELO_ERR_HANDLE);
}

TEST_CASE("of threads that destroy one handle at once one does, and no two objects share a slot") {
  constexpr int threads = 4, rounds = 500;
  std::vector<velo_closure> doomed;
  for (int i = 0; i < rounds; ++i) doomed.push_back(handle_of(make_object<seal>(nullptr)));
  std::atomic<int> ready{0}, done{0}, refused{0};
  on_threads(threads, [&] {
    ++ready;
    while (ready < threads) std::this_thread::yield();
    for (const velo_closure handle : doomed) {
      try {
        destroy_handle<seal>(handle, "closure");
        ++done;
      } catch (const failure& late) {
        if (late.code == VELO_ERR_HANDLE) ++refused;
      }
    }
  });
  CHECK(done == rounds);
  CHECK(refused == rounds * (threads - 1));
  std::set<velo_closure> living;
  for (int i = 0; i < 2 * rounds; ++i) living.insert(handle_of(make_object<seal>(nullptr)));
  CHECK(living.size() == 2 * rounds);
  for (const velo_closure handle : living) destroy_handle<seal>(handle, "closure");
}

TEST_CASE("a claim keeps others from destroying, and ends when it is not used") {
  crate& made = make_object<crate>(nullptr, 3);
  const velo_pack handle = handle_of(made);
  {
    const claim<crate> mine(handle, "pack");
    CHECK(&mine.object() == &made);
    CHECK(&resolve<crate>(handle, "pack") == &made);
    CHECK(failure_of([&] { destroy_handle<crate>(handle, "pack"); }).code == VELO_ERR_HANDLE);
  }
  destroy_handle<crate>(handle, "pack");
  CHECK(crate::count == 0);
}
