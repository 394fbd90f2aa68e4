// Every collective alone, over ranks, dtypes and sizes, even and uneven, apart and in place,
// against plain loops (sweep.hpp): each element where it belongs, nothing beside it touched.
#include "comm/collective/sweep.hpp"

using namespace velo::testing;

namespace {

constexpr dtype_case moved_dtypes[] = {
    {f32, "float32"}, {bf16, "bfloat16"}, {u8, "uint8"}, {i64, "int64"}};

// in_parts: a rank has a part of the elements, which is then as large.
void try_alone(sweep::trial what, bool in_parts) {
  for (const int count : {1, 2, 3, 4, 5, 8}) {
    velo_group_desc desc = group_desc();
    desc.buffer = 32 << 10;  // slots are full soon
    const local_ranks ranks(count, desc);
    std::vector<std::int64_t> sizes;
    for (const std::int64_t size : {0, 1, 5, 37, 1000, 20011})
      sizes.push_back(in_parts ? size * count : size);
    std::vector<std::string> first_wrong(at(count));
    ranks.require([&](const rank_of_group& me) {
      sweep of(me);
      if (in_parts) of.try_only_sums();
      for (const dtype_case& d : moved_dtypes) of.run({what}, d, sizes);
      first_wrong[at(me.rank)] = of.first();
      return velo_status{VELO_OK};
    });
    INFO(count << " ranks");
    CHECK(first_wrong == std::vector<std::string>(at(count)));
  }
}

}  // namespace

TEST_CASE("broadcast: every rank gets what the root has") {
  try_alone(&sweep::broadcast, false);
}

TEST_CASE("reduce: the root alone gets the combined elements") {
  try_alone(&sweep::reduce, false);
}

TEST_CASE("all_gather: every rank gets all, side by side, also into where its own is") {
  try_alone(&sweep::all_gather, true);
}

TEST_CASE("all_gather_v: ranks with different numbers of elements, at any place") {
  try_alone(&sweep::all_gather_v, true);
}

TEST_CASE("reduce_scatter: each rank gets its part of the combined elements") {
  try_alone(&sweep::reduce_scatter, true);
}

TEST_CASE("reduce_scatter_v: parts of different sizes, and narrow elements into float32") {
  try_alone(&sweep::reduce_scatter_v, true);
}

TEST_CASE("all_to_all: part j of rank i becomes part i of rank j, also in place") {
  try_alone(&sweep::all_to_all, true);
}

TEST_CASE("all_to_all_v: any number of elements between any two ranks, at any place") {
  try_alone(&sweep::all_to_all_v, true);
}

TEST_CASE("gather and scatter: to one rank and from one, even and uneven") {
  try_alone(&sweep::gather_and_scatter, true);
  try_alone(&sweep::gather_and_scatter_v, true);
}
