// Every collective over ranks, dtypes and sizes, even and uneven, apart and in place: each element
// where it belongs, nothing beside it touched.
#include <numeric>

#include "comm/ranks.hpp"

using namespace velo::test;

namespace {

constexpr velo_dtype f32{VELO_DTYPE_FLOAT, 32, 1};
constexpr dtype_case moved_dtypes[] = {{f32, "float32"},
                                       {{VELO_DTYPE_BFLOAT, 16, 1}, "bfloat16"},
                                       {{VELO_DTYPE_UINT, 8, 1}, "uint8"},
                                       {{VELO_DTYPE_INT, 64, 1}, "int64"}};
constexpr int rank_counts[] = {1, 2, 3, 4, 5, 8};
constexpr std::int64_t sizes[] = {0, 1, 5, 37, 1000, 20011};

// Whole numbers that every dtype holds, of a rank's element.
double element(int rank, std::int64_t i) {
  return static_cast<double>((rank * 11 + i * 7) % 29);
}

std::size_t at(int rank) {
  return static_cast<std::size_t>(rank);
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
    ranks.require([&](int rank) {
      const velo_tensor mine = x[rank];
      return velo_group_broadcast(ranks.stream(rank), ranks.group(rank), root, &mine);
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
    ranks.require([&](int rank) {
      const velo_tensor from = in[rank], to = out[rank];
      return velo_group_reduce(ranks.stream(rank), ranks.group(rank), root, &how, &from,
                               rank == root ? &to : nullptr);
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
    ranks.require([&](int rank) {
      velo_tensor from = in[rank], to = out[rank];
      const velo_status apart =
          velo_group_all_gather(ranks.stream(rank), ranks.group(rank), &from, &to);
      if (apart != VELO_OK) return apart;
      to = place[rank];
      from = place.slice(rank, rank * size, size);
      return velo_group_all_gather(ranks.stream(rank), ranks.group(rank), &from, &to);
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
    ranks.require([&](int rank) {
      const velo_tensor from = in[rank], to = packed[rank], there = placed[rank];
      const velo_status first = velo_group_all_gather_v(ranks.stream(rank), ranks.group(rank),
                                                        &from, counts.data(), nullptr, &to);
      if (first != VELO_OK) return first;
      return velo_group_all_gather_v(ranks.stream(rank), ranks.group(rank), &from, counts.data(),
                                     offsets.data(), &there);
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
    ranks.require([&](int rank) {
      velo_tensor from = in[rank], to = out[rank];
      const velo_status apart =
          velo_group_reduce_scatter(ranks.stream(rank), ranks.group(rank), nullptr, &from, &to);
      if (apart != VELO_OK) return apart;
      from = place[rank];
      to = place.slice(rank, rank * size, size);
      return velo_group_reduce_scatter(ranks.stream(rank), ranks.group(rank), nullptr, &from, &to);
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
    ranks.require([&](int rank) {
      const velo_tensor from = in[rank], to = out[rank];
      return velo_group_reduce_scatter_v(ranks.stream(rank), ranks.group(rank), nullptr, &from,
                                         counts.data(), &to);
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
    ranks.require([&](int rank) {
      const velo_tensor from = in[rank], to = out[rank], both = place[rank];
      const velo_status apart =
          velo_group_all_to_all(ranks.stream(rank), ranks.group(rank), &from, &to);
      if (apart != VELO_OK) return apart;
      return velo_group_all_to_all(ranks.stream(rank), ranks.group(rank), &both, &both);
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
    // What rank i gives rank j.
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
    ranks.require([&](int rank) {
      const velo_tensor from = in[rank], to = out[rank];
      return velo_group_all_to_all_v(ranks.stream(rank), ranks.group(rank), &from,
                                     in_counts[at(rank)].data(), in_offsets[at(rank)].data(),
                                     out_counts[at(rank)].data(), out_offsets[at(rank)].data(),
                                     &to);
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
    ranks.require([&](int rank) {
      const velo_stream stream = ranks.stream(rank);
      const velo_group group = ranks.group(rank);
      const bool has = rank == root;
      const velo_tensor from = in[rank], to = out[rank], again = back[rank];
      velo_status done = velo_group_gather(stream, group, root, &from, has ? &to : nullptr);
      if (done == VELO_OK)
        done = velo_group_scatter(stream, group, root, has ? &to : nullptr, &again);
      const velo_tensor few = uneven_in[rank], there = uneven_out[rank], last = uneven_back[rank];
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

TEST_CASE("what ranks give each other must be what the others expect") {
  const auto expect = [](const std::vector<said>& all, int told, int culprit, const char* expected,
                         const char* got) {
    const said& one = all[at(told)];
    CHECK(one.code == VELO_ERR_PEER);
    CHECK(one.rank == culprit);
    CHECK(one.expected == expected);
    CHECK(one.got == got);
  };
  std::vector<float> x(100), y(100);
  const std::int64_t hundred = 100;
  SECTION("all_to_all_v") {
    const local_ranks ranks(3);
    expect(ranks.run([&](int rank) {
      std::vector<float> mine(100), theirs(100);
      const std::int64_t give[3] = {5, 6, 7};
      const std::int64_t take[3] = {5 + rank, 5 + rank, rank == 1 ? 9 : 5 + rank};
      const velo_tensor in{mine.data(), {VELO_DEVICE_CPU, 0}, 1, f32, &hundred, nullptr, 0};
      velo_tensor out = in;
      out.data = theirs.data();
      return velo_group_all_to_all_v(ranks.stream(rank), ranks.group(rank), &in, give, nullptr,
                                     take, nullptr, &out);
    }),
           1, 2, "all_to_all of 9 float32 (operation 1)", "rank 2 with all_to_all of 6 float32");
  }
  SECTION("gather_v") {
    const local_ranks ranks(3);
    expect(ranks.run([&](int rank) {
      const std::int64_t count = rank == 2 ? 4 : 10, counts[3] = {10, 10, 10};
      std::vector<float> mine(100);
      const velo_tensor in{mine.data(), {VELO_DEVICE_CPU, 0}, 1, f32, &count, nullptr, 0};
      const velo_tensor out{y.data(), {VELO_DEVICE_CPU, 0}, 1, f32, &hundred, nullptr, 0};
      return velo_group_gather_v(ranks.stream(rank), ranks.group(rank), 0, &in, counts, nullptr,
                                 &out);
    }),
           0, 2, "gather of 10 float32 to rank 0 (operation 1)",
           "rank 2 with gather of 4 float32 to rank 0");
  }
  SECTION("scatter_v") {
    const local_ranks ranks(3);
    expect(ranks.run([&](int rank) {
      const std::int64_t count = rank == 2 ? 4 : 10, counts[3] = {10, 10, 10};
      std::vector<float> mine(100);
      const velo_tensor out{mine.data(), {VELO_DEVICE_CPU, 0}, 1, f32, &count, nullptr, 0};
      const velo_tensor in{x.data(), {VELO_DEVICE_CPU, 0}, 1, f32, &hundred, nullptr, 0};
      return velo_group_scatter_v(ranks.stream(rank), ranks.group(rank), 0, &in, counts, nullptr,
                                  &out);
    }),
           2, 0, "scatter of 4 float32 from rank 0 (operation 1)",
           "rank 0 with scatter of 10 float32 from rank 0");
  }
  SECTION("roots and counts that all must know") {
    const local_ranks ranks(3);
    const std::vector<said> all = ranks.run([&](int rank) {
      std::vector<float> mine(100);
      const velo_tensor both{mine.data(), {VELO_DEVICE_CPU, 0}, 1, f32, &hundred, nullptr, 0};
      return velo_group_broadcast(ranks.stream(rank), ranks.group(rank), rank == 1 ? 2 : 0, &both);
    });
    for (int r = 0; r < 3; ++r)
      expect(all, r, 1, "broadcast of 100 float32 from rank 0 (operation 1)",
             "rank 1 with broadcast of 100 float32 from rank 2");
  }
  SECTION("counts of all_gather_v") {
    const local_ranks ranks(2);
    const std::vector<said> all = ranks.run([&](int rank) {
      std::vector<float> out(100);
      const std::int64_t counts[2] = {10, rank == 0 ? 10 : 20};
      const std::int64_t size = rank == 0 ? 10 : 20;
      std::vector<float> own(20);
      const velo_tensor in{own.data(), {VELO_DEVICE_CPU, 0}, 1, f32, &size, nullptr, 0};
      const velo_tensor to{out.data(), {VELO_DEVICE_CPU, 0}, 1, f32, &hundred, nullptr, 0};
      return velo_group_all_gather_v(ranks.stream(rank), ranks.group(rank), &in, counts, nullptr,
                                     &to);
    });
    CHECK(all[0].code == VELO_ERR_PEER);
    CHECK(all[1].code == VELO_ERR_PEER);
    CHECK(all[1].rank == 1);
  }
}

TEST_CASE("counts, offsets, roots and memory that do not fit are refused by name") {
  const local_ranks ranks(3);
  std::vector<float> a(30), b(30);
  std::int64_t thirty = 30, ten = 10;
  const velo_tensor x{a.data(), {VELO_DEVICE_CPU, 0}, 1, f32, &thirty, nullptr, 0};
  const velo_tensor y{b.data(), {VELO_DEVICE_CPU, 0}, 1, f32, &thirty, nullptr, 0};
  const velo_tensor small{a.data(), {VELO_DEVICE_CPU, 0}, 1, f32, &ten, nullptr, 0};
  const velo_stream stream = ranks.stream(0);
  const velo_group group = ranks.group(0);
  const auto refused = [&](velo_status code, const char* argument, velo_status got) {
    CHECK(got == code);
    CHECK(last_record().argument == argument);
  };
  SECTION("roots") {
    refused(VELO_ERR_ARGUMENT, "root", velo_group_broadcast(stream, group, 3, &x));
    refused(VELO_ERR_ARGUMENT, "root", velo_group_broadcast(stream, group, -1, &x));
    refused(VELO_ERR_ARGUMENT, "root", velo_group_reduce(stream, group, 9, nullptr, &x, &y));
    refused(VELO_ERR_ARGUMENT, "root", velo_group_gather(stream, group, 3, &small, &y));
    refused(VELO_ERR_ARGUMENT, "root", velo_group_scatter(stream, group, -2, &y, &small));
  }
  SECTION("tensors that only the root needs") {
    refused(VELO_ERR_NULL, "out", velo_group_reduce(stream, group, 0, nullptr, &x, nullptr));
    refused(VELO_ERR_NULL, "out", velo_group_gather(stream, group, 0, &small, nullptr));
    refused(VELO_ERR_NULL, "in", velo_group_scatter(stream, group, 0, nullptr, &small));
    refused(VELO_ERR_NULL, "counts",
            velo_group_gather_v(stream, group, 0, &small, nullptr, nullptr, &y));
  }
  SECTION("sizes") {
    refused(VELO_ERR_SHAPE, "out", velo_group_all_gather(stream, group, &x, &y));
    refused(VELO_ERR_SHAPE, "in", velo_group_reduce_scatter(stream, group, nullptr, &x, &y));
    std::int64_t odd = 20;
    velo_tensor twenty = x;
    twenty.shape = &odd;
    refused(VELO_ERR_SHAPE, "in", velo_group_all_to_all(stream, group, &twenty, &twenty));
    refused(VELO_ERR_SHAPE, "out", velo_group_all_to_all(stream, group, &x, &twenty));
  }
  SECTION("counts") {
    const std::int64_t negative[3] = {10, -1, 10}, many[3] = {10, 10, 11},
                       huge[3] = {10, INT64_MAX, INT64_MAX}, fits[3] = {10, 10, 10};
    refused(VELO_ERR_ARGUMENT, "counts[1]",
            velo_group_all_gather_v(stream, group, &small, negative, nullptr, &y));
    refused(VELO_ERR_ARGUMENT, "counts[2]",
            velo_group_all_gather_v(stream, group, &small, many, nullptr, &y));
    refused(VELO_ERR_ARGUMENT, "counts[1]",
            velo_group_all_gather_v(stream, group, &small, huge, nullptr, &y));
    refused(VELO_ERR_ARGUMENT, "in_counts[1]",
            velo_group_all_to_all_v(stream, group, &x, huge, nullptr, fits, nullptr, &y));
    const std::int64_t self[3] = {9, 10, 10};
    refused(VELO_ERR_ARGUMENT, "out_counts[0]",
            velo_group_all_to_all_v(stream, group, &x, fits, nullptr, self, nullptr, &y));
    refused(VELO_ERR_SHAPE, "in",
            velo_group_reduce_scatter_v(stream, group, nullptr, &x, self, &small));
    refused(VELO_ERR_SHAPE, "in",
            velo_group_all_gather_v(stream, group, &small, self, nullptr, &y));
  }
  SECTION("offsets") {
    const std::int64_t fits[3] = {10, 10, 10}, beyond[3] = {0, 10, 21}, before[3] = {0, -5, 20},
                       meets[3] = {0, 9, 19}, far[3] = {0, 10, INT64_MAX};
    refused(VELO_ERR_ARGUMENT, "offsets[2]",
            velo_group_all_gather_v(stream, group, &small, fits, beyond, &y));
    refused(VELO_ERR_ARGUMENT, "offsets[1]",
            velo_group_all_gather_v(stream, group, &small, fits, before, &y));
    refused(VELO_ERR_ARGUMENT, "offsets[2]",
            velo_group_all_gather_v(stream, group, &small, fits, far, &y));
    refused(VELO_ERR_ARGUMENT, "offsets[1]",
            velo_group_all_gather_v(stream, group, &small, fits, meets, &y));
    CHECK(last_record().got == "some of rank 0's");
    refused(VELO_ERR_ARGUMENT, "out_offsets[1]",
            velo_group_all_to_all_v(stream, group, &x, fits, meets, fits, meets, &y));
  }
  SECTION("memory") {
    velo_tensor shifted = small;
    shifted.data = a.data() + 1;
    refused(VELO_ERR_OVERLAP, "out", velo_group_all_gather(stream, group, &shifted, &x));
    refused(VELO_ERR_OVERLAP, "out",
            velo_group_reduce_scatter(stream, group, nullptr, &x, &shifted));
    const std::int64_t fits[3] = {10, 10, 10}, others[3] = {20, 0, 10};
    refused(VELO_ERR_OVERLAP, "out",
            velo_group_all_to_all_v(stream, group, &x, fits, nullptr, fits, others, &x));
  }
  SECTION("dtypes") {
    velo_tensor ints = y;
    ints.dtype = {VELO_DTYPE_INT, 32, 1};
    refused(VELO_ERR_DTYPE, "out", velo_group_all_gather(stream, group, &small, &ints));
    refused(VELO_ERR_DTYPE, "out", velo_group_all_to_all(stream, group, &x, &ints));
  }
  ranks.require(
      [&](int rank) { return velo_group_barrier(ranks.stream(rank), ranks.group(rank)); });
}
