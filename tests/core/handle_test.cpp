// Handles of other kinds, destroyed ones and reused slots are refused, each with what came; an owner
// destroys what it owns in the order of the kinds.
#include "core/handle.hpp"

#include <catch2/catch.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/core/fails.hpp"

namespace velo::core {
namespace {

// Two kinds that no spec declares: a kind is an object, wherever it stands.
handle_kind parcels("a parcel", 2);
handle_kind seals("an old seal", 1);

std::vector<int> destroyed;  // the values of parcels and seals, in the order in which they went

struct parcel {
  explicit parcel(int content, bool broken = false) : value(content) {
    ++count;
    if (broken) {
      --count;
      throw std::runtime_error("broken");
    }
  }
  ~parcel() {
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
struct handle_traits<parcel> {
  using handle = velo_pack;
  static constexpr handle_kind& kind = parcels;
};
template <>
struct handle_traits<seal> {
  using handle = velo_closure;
  static constexpr handle_kind& kind = seals;
};

}  // namespace velo::core

using namespace velo::core;
using velo::test::failure_of;

TEST_CASE("a live handle gives its object") {
  parcel& made = make_object<parcel>(nullptr, 7);
  const velo_pack handle = handle_of(made);
  CHECK(&resolve<parcel>(handle, "pack") == &made);
  CHECK(resolve<parcel>(handle, "pack").value == 7);
  destroy_handle<parcel>(handle, "pack");
  CHECK(parcel::count == 0);
}

TEST_CASE("NULL, another kind and a destroyed handle are told apart") {
  const velo_pack pack = handle_of(make_object<parcel>(nullptr, 1));
  const velo_closure closure = handle_of(make_object<seal>(nullptr));

  const failure null = failure_of([] { resolve<parcel>(nullptr, "pack"); });
  CHECK(null.code == VELO_ERR_NULL);
  CHECK(std::string(null.argument) == "pack");

  const failure other =
      failure_of([&] { resolve<parcel>(reinterpret_cast<velo_pack>(closure), "args.b"); });
  CHECK(other.code == VELO_ERR_HANDLE);
  CHECK(std::string(other.argument) == "args.b");
  CHECK(std::string(other.expected) == "a parcel");
  CHECK(std::string(other.got) == "an old seal");

  destroy_handle<parcel>(pack, "pack");
  const failure gone = failure_of([&] { resolve<parcel>(pack, "pack"); });
  CHECK(gone.code == VELO_ERR_HANDLE);
  CHECK(std::string(gone.got) == "a destroyed parcel");
  CHECK(failure_of([&] { destroy_handle<parcel>(pack, "pack"); }).code == VELO_ERR_HANDLE);
  destroy_handle<seal>(closure, "closure");
}

TEST_CASE("a stale handle stays refused when its slot has a new tenant") {
  const velo_pack stale = handle_of(make_object<parcel>(nullptr, 0));
  const auto slot = reinterpret_cast<std::uintptr_t>(stale) & ~std::uintptr_t{63};
  destroy_handle<parcel>(stale, "pack");
  int until_reuse = 0;
  bool reused = false;
  while (!reused) {
    const velo_pack next = handle_of(make_object<parcel>(nullptr, 1));
    ++until_reuse;
    reused = (reinterpret_cast<std::uintptr_t>(next) & ~std::uintptr_t{63}) == slot;
    CHECK(next != stale);
    CHECK(failure_of([&] { resolve<parcel>(stale, "pack"); }).code == VELO_ERR_HANDLE);
    destroy_handle<parcel>(next, "pack");
    REQUIRE(until_reuse < 1000);
  }
  CHECK(until_reuse >= 16);  // first in, first out: the whole slab is used before the slot again
}

TEST_CASE("a constructor that throws gives its slot back") {
  CHECK_THROWS_AS(make_object<parcel>(nullptr, 1, true), std::runtime_error);
  CHECK(parcel::count == 0);
  const velo_pack after = handle_of(make_object<parcel>(nullptr, 2));
  CHECK(resolve<parcel>(after, "pack").value == 2);
  destroy_handle<parcel>(after, "pack");
}

TEST_CASE("an owner's objects go together, others stay") {
  handle_owner mine, theirs;
  std::vector<velo_pack> packs;
  for (int i = 0; i < 40; ++i)
    packs.push_back(handle_of(make_object<parcel>(i % 2 == 0 ? &mine : &theirs, i)));
  mine.destroy_owned();
  CHECK(parcel::count == 20);
  for (int i = 0; i < 40; ++i) {
    if (i % 2 == 0) {
      CHECK(failure_of([&] { resolve<parcel>(packs[static_cast<std::size_t>(i)], "pack"); }).code ==
            VELO_ERR_HANDLE);
    } else {
      CHECK(resolve<parcel>(packs[static_cast<std::size_t>(i)], "pack").value == i);
    }
  }
  theirs.destroy_owned();
  CHECK(parcel::count == 0);
}

TEST_CASE("an owner destroys kind by kind, the newest first, and each object once") {
  destroyed.clear();
  {
    handle_owner owner;
    std::vector<velo_pack> packs;
    for (int i = 0; i < 5; ++i) {
      packs.push_back(handle_of(make_object<parcel>(&owner, i)));
      make_object<seal>(&owner, 10 + i);
    }
    // The first, the last and one between: every way of leaving the list.
    for (const std::size_t i : {2u, 0u, 4u}) destroy_handle<parcel>(packs[i], "pack");
    CHECK(destroyed == std::vector<int>{2, 0, 4});
    make_object<parcel>(&owner, 5);
  }
  CHECK(destroyed == std::vector<int>{2, 0, 4, 14, 13, 12, 11, 10, 5, 3, 1});
}

TEST_CASE("a handle of another copy of velo is told from one of no velo") {
  alignas(64) slot_header fake[2] = {};
  const auto as_pack = [](slot_header* slot) { return reinterpret_cast<velo_pack>(slot); };
  const failure none = failure_of([&] { resolve<parcel>(as_pack(&fake[0]), "pack"); });
  CHECK(none.code == VELO_ERR_HANDLE);
  CHECK(std::string(none.got) == "no velo handle");
  const velo_pack real = handle_of(make_object<parcel>(nullptr, 1));
  fake[1].magic = reinterpret_cast<const slot_header*>(reinterpret_cast<std::uintptr_t>(real) &
                                                       ~std::uintptr_t{63})
                      ->magic;
  const failure other = failure_of([&] { resolve<parcel>(as_pack(&fake[1]), "pack"); });
  CHECK(other.code == VELO_ERR_HANDLE);
  CHECK(std::string(other.got) == "a handle of another copy of velo");
  destroy_handle<parcel>(real, "pack");
}

TEST_CASE("threads make and destroy handles at once without ever sharing a slot") {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&wrong] {
      for (int i = 0; i < 2000; ++i) {
        const velo_closure a = handle_of(make_object<seal>(nullptr));
        const velo_closure b = handle_of(make_object<seal>(nullptr));
        if (a == b) ++wrong;
        destroy_handle<seal>(a, "closure");
        destroy_handle<seal>(b, "closure");
      }
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
}
