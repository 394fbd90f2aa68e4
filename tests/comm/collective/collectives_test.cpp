// Every collective over ranks, dtypes and sizes, even and uneven, apart and in place: each element
// where it belongs, nothing beside it touched.
#include <numeric>

#include "comm/ranks.hpp"
#include "tests/tensors.hpp"

using namespace velo::testing;

namespace {

constexpr dtype_case moved_dtypes[] = {
    {f32, "float32"}, {bf16, "bfloat16"}, {u8, "uint8"}, {i64, "int64"}};
constexpr int rank_counts[] = {1, 2, 3, 4, 5, 8};
constexpr std::int64_t sizes[] = {0, 1, 5, 37, 1000, 20011};

// Whole numbers that every dtype holds, of a rank's element.
double element(int rank, std::int64_t i) {
  return static_cast<double>((rank * 11 + i * 7) % 29);
}

// A tensor for each rank, filled or not.
struct tensors {
  std::vector<elements_ptr> of;

  // counts: one for each rank.
  tensors(velo_dtype dtype, const std::vector<std::int64_t>& counts, bool filled) {
    for (std::size_t r = 0; r < counts.size(); ++r) {
      of.push_back(make_elements(dtype, counts[r], static_cast<int>((r + counts[r] % 7) % 5)));
      for (std::int64_t i = 0; filled && i < counts[r]; ++i)
        of.back()->set(i, element(static_cast<int>(r), i));
    }
  }
  tensors(velo_dtype dtype, int ranks, std::int64_t count, bool filled)
      : tensors(dtype, std::vector<std::int64_t>(at(ranks), count), filled) {}

  velo_tensor operator[](int rank) const { return of[at(rank)]->view(); }
  // Part of a rank's tensor.
  velo_tensor slice(int rank, std::int64_t begin, const std::int64_t& count) const {
    velo_tensor view = of[at(rank)]->view();
    view.data = of[at(rank)]->at(begin);
    view.shape = &count;
    return view;
  }
  bool borders_kept() const {
    for (const elements_ptr& one : of)
      if (!one->borders_kept()) return false;
    return true;
  }
  // Whether [begin, begin + count) of a rank is [from, ..) of another's elements.
  bool holds(int rank, std::int64_t begin, std::int64_t count, int other, std::int64_t from) const {
    for (std::int64_t i = 0; i < count; ++i)
      if (of[at(rank)]->get(begin + i) != element(other, from + i)) return false;
    return true;
  }
};

velo_group_desc small_slots() {
  velo_group_desc desc = group_desc();
  desc.buffer = 32 << 10;
  return desc;
}

// body(ranks, dtype, size) for all.
template <class Body>
void for_all(Body&& body) {
  for (const int count : rank_counts) {
    const local_ranks ranks(count, small_slots());
    for (const dtype_case& d : moved_dtypes)
      for (const std::int64_t size : sizes) {
        INFO(count << " ranks, " << d.name << ", " << size);
        body(ranks, d.dtype, size);
      }
  }
}

// Different numbers for each rank, some zero, around `size`.
std::vector<std::int64_t> uneven_counts(int ranks, std::int64_t size) {
  std::vector<std::int64_t> all;
  for (int r = 0; r < ranks; ++r) all.push_back(r % 3 == 1 ? 0 : (size * (r + 1)) / ranks + r % 2);
  return all;
}

std::int64_t sum_of(const std::vector<std::int64_t>& all) {
  return std::accumulate(all.begin(), all.end(), std::int64_t{0});
}

// Offsets in reverse order with a gap between.
std::vector<std::int64_t> scattered(const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> all(counts.size());
  std::int64_t next = 2;
  for (std::size_t r = counts.size(); r-- > 0;) {
    all[r] = next;
    next += counts[r] + 3;
  }
  return all;
}

std::int64_t end_of(const std::vector<std::int64_t>& counts,
                    const std::vector<std::int64_t>& offsets) {
  std::int64_t end = 0;
  for (std::size_t r = 0; r < counts.size(); ++r) end = std::max(end, offsets[r] + counts[r]);
  return end + 2;
}

}  // namespace

TEST_CASE("broadcast: every rank gets what the root has") {
  for_all([](const local_ranks& ranks, velo_dtype dtype, std::int64_t size) {
    const int root = static_cast<int>(size % ranks.size());
    const tensors x(dtype, ranks.size(), size, true);
    ranks.require([&](const rank_of_group& me) {
      const velo_tensor mine = x[me.rank];
      return velo_group_broadcast(me.stream, me.group, root, &mine);
    });
    for (int r = 0; r < ranks.size(); ++r) CHECK(x.holds(r, 0, size, root, 0));
    CHECK(x.borders_kept());
  });
}

TEST_CASE("reduce: the root alone gets the combined elements") {
  for_all([](const local_ranks& ranks, velo_dtype dtype, std::int64_t size) {
    const int root = static_cast<int>((size + 1) % ranks.size());
    const tensors in(dtype, ranks.size(), size, true), out(dtype, ranks.size(), size, false);
    velo_reduction how = VELO_REDUCTION_INIT;
    how.op = size % 2 == 0 ? VELO_REDUCE_SUM : VELO_REDUCE_MAX;
    ranks.require([&](const rank_of_group& me) {
      const velo_tensor from = in[me.rank], to = out[me.rank];
      return velo_group_reduce(me.stream, me.group, root, &how, &from,
                               me.rank == root ? &to : nullptr);
    });
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      double expected = element(0, i);
      for (int r = 1; r < ranks.size(); ++r)
        expected = how.op == VELO_REDUCE_SUM ? expected + element(r, i)
                                             : std::max(expected, element(r, i));
      wrong += out.of[at(root)]->get(i) != expected;
    }
    CHECK(wrong == 0);
    for (int r = 0; r < ranks.size(); ++r) CHECK(in.holds(r, 0, size, r, 0));
    CHECK(out.borders_kept());
  });
}

TEST_CASE("all_gather: every rank gets all, side by side, also into where its own is") {
  for_all([](const local_ranks& ranks, velo_dtype dtype, std::int64_t size) {
    const tensors in(dtype, ranks.size(), size, true);
    const tensors out(dtype, ranks.size(), size * ranks.size(), false);
    const tensors place(dtype, ranks.size(), size * ranks.size(), false);
    for (int r = 0; r < ranks.size(); ++r)
      for (std::int64_t i = 0; i < size; ++i) place.of[at(r)]->set(r * size + i, element(r, i));
    ranks.require([&](const rank_of_group& me) {
      velo_tensor from = in[me.rank], to = out[me.rank];
      const velo_status apart = velo_group_all_gather(me.stream, me.group, &from, &to);
      if (apart != VELO_OK) return apart;
      to = place[me.rank];
      from = place.slice(me.rank, me.rank * size, size);
      return velo_group_all_gather(me.stream, me.group, &from, &to);
    });
    for (int r = 0; r < ranks.size(); ++r)
      for (int s = 0; s < ranks.size(); ++s) {
        CHECK(out.holds(r, s * size, size, s, 0));
        CHECK(place.holds(r, s * size, size, s, 0));
      }
    CHECK(out.borders_kept());
  });
}

TEST_CASE("all_gather_v: ranks with different numbers of elements, at any place") {
  for_all([](const local_ranks& ranks, velo_dtype dtype, std::int64_t size) {
    const std::vector<std::int64_t> counts = uneven_counts(ranks.size(), size);
    const std::vector<std::int64_t> offsets = scattered(counts);
    const tensors in(dtype, counts, true);
    const tensors packed(dtype, ranks.size(), sum_of(counts), false);
    const tensors placed(dtype, ranks.size(), end_of(counts, offsets), false);
    ranks.require([&](const rank_of_group& me) {
      const velo_tensor from = in[me.rank], to = packed[me.rank], there = placed[me.rank];
      const velo_status first =
          velo_group_all_gather_v(me.stream, me.group, &from, counts.data(), nullptr, &to);
      if (first != VELO_OK) return first;
      return velo_group_all_gather_v(me.stream, me.group, &from, counts.data(), offsets.data(),
                                     &there);
    });
    for (int r = 0; r < ranks.size(); ++r) {
      std::int64_t begin = 0;
      for (int s = 0; s < ranks.size(); ++s) {
        CHECK(packed.holds(r, begin, counts[at(s)], s, 0));
        CHECK(placed.holds(r, offsets[at(s)], counts[at(s)], s, 0));
        begin += counts[at(s)];
      }
      CHECK(*placed.of[at(r)]->at(0) == 0xa5);  // gaps stay
    }
    CHECK(packed.borders_kept());
    CHECK(placed.borders_kept());
  });
}

TEST_CASE("reduce_scatter: each rank gets its part of the combined elements") {
  for_all([](const local_ranks& ranks, velo_dtype dtype, std::int64_t size) {
    const tensors in(dtype, ranks.size(), size * ranks.size(), true);
    const tensors out(dtype, ranks.size(), size, false);
    const tensors place(dtype, ranks.size(), size * ranks.size(), true);
    ranks.require([&](const rank_of_group& me) {
      velo_tensor from = in[me.rank], to = out[me.rank];
      const velo_status apart = velo_group_reduce_scatter(me.stream, me.group, nullptr, &from, &to);
      if (apart != VELO_OK) return apart;
      from = place[me.rank];
      to = place.slice(me.rank, me.rank * size, size);
      return velo_group_reduce_scatter(me.stream, me.group, nullptr, &from, &to);
    });
    for (int r = 0; r < ranks.size(); ++r) {
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < size; ++i) {
        double sum = 0;
        for (int s = 0; s < ranks.size(); ++s) sum += element(s, r * size + i);
        wrong += out.of[at(r)]->get(i) != sum;
        wrong += place.of[at(r)]->get(r * size + i) != sum;
      }
      CHECK(wrong == 0);
    }
    CHECK(out.borders_kept());
    CHECK(place.borders_kept());
  });
}

TEST_CASE("reduce_scatter_v: parts of different sizes, and narrow elements into float32") {
  for_all([](const local_ranks& ranks, velo_dtype dtype, std::int64_t size) {
    const std::vector<std::int64_t> counts = uneven_counts(ranks.size(), size);
    const velo_dtype wide = dtype.bits == 16 ? f32 : dtype;
    const tensors in(dtype, ranks.size(), sum_of(counts), true);
    const tensors out(wide, counts, false);
    ranks.require([&](const rank_of_group& me) {
      const velo_tensor from = in[me.rank], to = out[me.rank];
      return velo_group_reduce_scatter_v(me.stream, me.group, nullptr, &from, counts.data(), &to);
    });
    std::int64_t begin = 0, wrong = 0;
    for (int r = 0; r < ranks.size(); ++r) {
      for (std::int64_t i = 0; i < counts[at(r)]; ++i) {
        double sum = 0;
        for (int s = 0; s < ranks.size(); ++s) sum += element(s, begin + i);
        wrong += out.of[at(r)]->get(i) != sum;
      }
      begin += counts[at(r)];
    }
    CHECK(wrong == 0);
    CHECK(out.borders_kept());
  });
}

TEST_CASE("all_to_all: part j of rank i becomes part i of rank j, also in place") {
  for_all([](const local_ranks& ranks, velo_dtype dtype, std::int64_t size) {
    const tensors in(dtype, ranks.size(), size * ranks.size(), true);
    const tensors out(dtype, ranks.size(), size * ranks.size(), false);
    const tensors place(dtype, ranks.size(), size * ranks.size(), true);
    ranks.require([&](const rank_of_group& me) {
      const velo_tensor from = in[me.rank], to = out[me.rank], both = place[me.rank];
      const velo_status apart = velo_group_all_to_all(me.stream, me.group, &from, &to);
      if (apart != VELO_OK) return apart;
      return velo_group_all_to_all(me.stream, me.group, &both, &both);
    });
    for (int r = 0; r < ranks.size(); ++r)
      for (int s = 0; s < ranks.size(); ++s) {
        CHECK(out.holds(r, s * size, size, s, r * size));
        CHECK(place.holds(r, s * size, size, s, r * size));
      }
    CHECK(out.borders_kept());
    CHECK(place.borders_kept());
  });
}

TEST_CASE("all_to_all_v: any number of elements between any two ranks, at any place") {
  for_all([](const local_ranks& ranks, velo_dtype dtype, std::int64_t size) {
    const int n = ranks.size();
    // The number of elements that rank i sends to rank j.
    const auto given = [&](int i, int j) {
      return (i + 2 * j) % 4 == 0 ? 0 : size * (i + j + 1) / (n + 1);
    };
    std::vector<std::vector<std::int64_t>> in_counts(at(n)), out_counts(at(n)), in_offsets(at(n)),
        out_offsets(at(n));
    std::vector<std::int64_t> in_sizes, out_sizes;
    for (int r = 0; r < n; ++r) {
      for (int s = 0; s < n; ++s) {
        in_counts[at(r)].push_back(given(r, s));
        out_counts[at(r)].push_back(given(s, r));
      }
      in_offsets[at(r)] = scattered(in_counts[at(r)]);
      out_offsets[at(r)] = scattered(out_counts[at(r)]);
      in_sizes.push_back(end_of(in_counts[at(r)], in_offsets[at(r)]));
      out_sizes.push_back(end_of(out_counts[at(r)], out_offsets[at(r)]));
    }
    const tensors in(dtype, in_sizes, true), out(dtype, out_sizes, false);
    ranks.require([&](const rank_of_group& me) {
      const velo_tensor from = in[me.rank], to = out[me.rank];
      return velo_group_all_to_all_v(me.stream, me.group, &from, in_counts[at(me.rank)].data(),
                                     in_offsets[at(me.rank)].data(), out_counts[at(me.rank)].data(),
                                     out_offsets[at(me.rank)].data(), &to);
    });
    for (int r = 0; r < n; ++r)
      for (int s = 0; s < n; ++s)
        CHECK(out.holds(r, out_offsets[at(r)][at(s)], given(s, r), s, in_offsets[at(s)][at(r)]));
    CHECK(out.borders_kept());
  });
}

TEST_CASE("gather and scatter: to one rank and from one, even and uneven") {
  for_all([](const local_ranks& ranks, velo_dtype dtype, std::int64_t size) {
    const int n = ranks.size(), root = static_cast<int>((size + 2) % n);
    const std::vector<std::int64_t> counts = uneven_counts(n, size), offsets = scattered(counts);
    const tensors in(dtype, n, size, true), out(dtype, n, size * n, false);
    const tensors uneven_in(dtype, counts, true);
    const tensors uneven_out(dtype, n, end_of(counts, offsets), false);
    const tensors back(dtype, n, size, false), uneven_back(dtype, counts, false);
    ranks.require([&](const rank_of_group& me) {
      const velo_stream stream = me.stream;
      const velo_group group = me.group;
      const bool has = me.rank == root;
      const velo_tensor from = in[me.rank], to = out[me.rank], again = back[me.rank];
      velo_status done = velo_group_gather(stream, group, root, &from, has ? &to : nullptr);
      if (done == VELO_OK)
        done = velo_group_scatter(stream, group, root, has ? &to : nullptr, &again);
      const velo_tensor few = uneven_in[me.rank], there = uneven_out[me.rank],
                        last = uneven_back[me.rank];
      if (done == VELO_OK)
        done = velo_group_gather_v(stream, group, root, &few, has ? counts.data() : nullptr,
                                   offsets.data(), has ? &there : nullptr);
      if (done == VELO_OK)
        done = velo_group_scatter_v(stream, group, root, has ? &there : nullptr,
                                    has ? counts.data() : nullptr, offsets.data(), &last);
      return done;
    });
    for (int r = 0; r < n; ++r) {
      CHECK(out.holds(root, r * size, size, r, 0));
      CHECK(back.holds(r, 0, size, r, 0));
      CHECK(uneven_out.holds(root, offsets[at(r)], counts[at(r)], r, 0));
      CHECK(uneven_back.holds(r, 0, counts[at(r)], r, 0));
    }
    CHECK(out.borders_kept());
    CHECK(uneven_out.borders_kept());
    CHECK(back.borders_kept());
    CHECK(uneven_back.borders_kept());
  });
}
