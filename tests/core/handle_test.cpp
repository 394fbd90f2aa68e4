// Handles of other kinds, destroyed ones and reused slots are refused, each with what came.
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

// Stand-ins that use the slabs of two kinds no core object uses.
struct parcel {
  explicit parcel(int content, bool broken = false) : value(content) {
    ++count;
    if (broken) {
      --count;
      throw std::runtime_error("broken");
    }
  }
  ~parcel() { --count; }
  int value;
  static inline int count = 0;
};

struct seal {};

}  // namespace

template <>
struct handle_traits<parcel> {
  using handle = velo_pack;
  static constexpr kind id = kind::pack;
};
template <>
struct handle_traits<seal> {
  using handle = velo_closure;
  static constexpr kind id = kind::closure;
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
  CHECK(std::string(other.expected) == "a pack");
  CHECK(std::string(other.got) == "a closure");

  destroy_handle<parcel>(pack, "pack");
  const failure gone = failure_of([&] { resolve<parcel>(pack, "pack"); });
  CHECK(gone.code == VELO_ERR_HANDLE);
  CHECK(std::string(gone.got) == "a destroyed pack");
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
  const int mine = 0, theirs = 0;
  std::vector<velo_pack> packs;
  for (int i = 0; i < 40; ++i)
    packs.push_back(handle_of(make_object<parcel>(i % 2 == 0 ? &mine : &theirs, i)));
  destroy_owned(&mine);
  CHECK(parcel::count == 20);
  for (int i = 0; i < 40; ++i) {
    if (i % 2 == 0) {
      CHECK(failure_of([&] { resolve<parcel>(packs[static_cast<std::size_t>(i)], "pack"); }).code ==
            VELO_ERR_HANDLE);
    } else {
      CHECK(resolve<parcel>(packs[static_cast<std::size_t>(i)], "pack").value == i);
    }
  }
  destroy_owned(&theirs);
  CHECK(parcel::count == 0);
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
