// all_reduce over ranks, dtypes, operations and sizes: against serial sums, bit for bit on all
// ranks.
#include <cmath>
#include <limits>

#include "comm/collective/sweep.hpp"
#include "tests/random.hpp"
#include "tests/tensors.hpp"

using namespace velo::testing;

namespace {

constexpr velo_reduce_op operations[] = {VELO_REDUCE_SUM, VELO_REDUCE_AVG, VELO_REDUCE_MIN,
                                         VELO_REDUCE_MAX};

// Against plain loops (sweep.hpp), in place and apart, with each operation.
void try_all(const local_ranks& ranks, const dtype_case& d,
             const std::vector<std::int64_t>& sizes) {
  std::vector<std::string> first_wrong(at(ranks.size()));
  ranks.require([&](const rank_of_group& me) {
    sweep of(me);
    of.run({&sweep::all_reduce}, d, sizes);
    first_wrong[at(me.rank)] = of.first();
    return velo_status{VELO_OK};
  });
  INFO(ranks.size() << " ranks, " << d.name);
  CHECK(first_wrong == std::vector<std::string>(at(ranks.size())));
}

}  // namespace

TEST_CASE("all ranks get the same combined elements, of every dtype and size") {
  for (const int count : {1, 2, 3, 4, 5, 8}) {
    velo_group_desc desc = group_desc();
    desc.buffer = 32 << 10;  // slots are full soon
    const local_ranks ranks(count, desc);
    for (const dtype_case& d : reduced_dtypes)
      try_all(ranks, d, {0, 1, 7, 22, 89, 1000, 5003, 40001});
  }
}

TEST_CASE("narrow elements may become float32, rounded once") {
  const local_ranks ranks(3);
  for (const int narrow : {2, 3}) try_all(ranks, reduced_dtypes[narrow], {5, 3000, 300001});
}

TEST_CASE("large tensors go through the staging buffers in chunks, around the cache at the end") {
  const auto element = [](int rank, std::int64_t i) {
    return static_cast<float>((rank * 7 + i * 13) % 31 - 15);
  };
  for (const int count : {2, 3}) {
    const local_ranks ranks(count);
    for (const std::int64_t size : {1 << 20, (1 << 20) + 77, 9000001}) {
      INFO(count << " ranks, " << size);
      std::atomic<std::int64_t> wrong{0};
      ranks.require([&](const rank_of_group& me) {
        float_tensor in({size}), out({size});
        for (std::int64_t i = 0; i < size; ++i) in.data[at(i)] = element(me.rank, i);
        const velo_status done =
            velo_group_all_reduce(me.stream, me.group, nullptr, &in.view, &out.view);
        std::int64_t differ = 0;
        for (std::int64_t i = 0; i < size; ++i) {
          float sum = 0;
          for (int r = 0; r < count; ++r) sum += element(r, i);
          differ += out.data[at(i)] != sum;
        }
        wrong += differ;
        return done;
      });
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("elements are summed in the order of the ranks, in float32") {
  const local_ranks ranks(4);
  for (const std::int64_t size : {3, 300, 200000}) {
    std::vector<std::vector<float>> in(4), out(4);
    std::vector<float> expected(static_cast<std::size_t>(size));
    cheap_random draw(1);
    for (int r = 0; r < 4; ++r)
      for (std::int64_t i = 0; i < size; ++i) {
        const std::uint32_t state = draw();
        const float x = static_cast<float>(state >> 8) * (r % 2 == 0 ? 1e-3f : 1e3f);
        in[at(r)].push_back(x);
        float& sum = expected[at(i)];
        sum = r == 0 ? x * 0.3f : sum + x * 0.3f;
      }
    out = in;
    velo_reduction how = VELO_REDUCTION_INIT;
    how.scale = 0.3;
    ranks.require([&](const rank_of_group& me) {  // in place
      return reduce_in_place(me.stream, me.group, out[at(me.rank)], &how);
    });
    for (int r = 0; r < 4; ++r)
      CHECK(std::memcmp(out[at(r)].data(), expected.data(),
                        static_cast<std::size_t>(size) * sizeof(float)) == 0);
  }
}

TEST_CASE("NaN and infinity are combined as IEEE 754 says, and NaN wins over least and largest") {
  const local_ranks ranks(3);
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float inf = std::numeric_limits<float>::infinity();
  const float values[3][5] = {{nan, 1, inf, 1, inf}, {2, nan, 1, 1, -inf}, {3, 2, 2, nan, 0}};
  for (const velo_reduce_op op : operations) {
    float out[3][5] = {};
    velo_reduction how = VELO_REDUCTION_INIT;
    how.op = op;
    const std::int64_t size = 5;
    ranks.require([&](const rank_of_group& me) {
      velo_tensor in = view_of(values[me.rank], f32, size);
      velo_tensor to = in;
      to.data = out[me.rank];
      return velo_group_all_reduce(me.stream, me.group, &how, &in, &to);
    });
    INFO("operation " << op);
    const float* got = out[1];
    CHECK(std::isnan(got[0]));
    CHECK(std::isnan(got[1]));
    CHECK(std::isnan(got[3]));
    CHECK(got[2] == (op == VELO_REDUCE_MIN ? 1 : inf));
    if (op == VELO_REDUCE_MIN) CHECK(got[4] == -inf);
    if (op == VELO_REDUCE_MAX) CHECK(got[4] == inf);
    if (op == VELO_REDUCE_SUM || op == VELO_REDUCE_AVG) CHECK(std::isnan(got[4]));
  }
}

TEST_CASE("sums of integers wrap, and their averages are exact") {
  const local_ranks ranks(3);
  std::int64_t sums[3][2], averages[3][2];
  const std::int64_t size = 2, most = std::numeric_limits<std::int64_t>::max();
  const std::int64_t values[3][2] = {{most, -7}, {most, 0}, {most, -1}};
  ranks.require([&](const rank_of_group& me) {
    velo_tensor in = view_of(values[me.rank], i64, size);
    velo_tensor to = in;
    to.data = sums[me.rank];
    velo_reduction how = VELO_REDUCTION_INIT;
    const velo_status first = velo_group_all_reduce(me.stream, me.group, nullptr, &in, &to);
    if (first != VELO_OK) return first;
    to.data = averages[me.rank];
    how.op = VELO_REDUCE_AVG;
    return velo_group_all_reduce(me.stream, me.group, &how, &in, &to);
  });
  CHECK(sums[2][0] == most - 2);  // 3 * (2^63 - 1) modulo 2^64
  CHECK(sums[2][1] == -8);
  CHECK(averages[2][0] == most);
  CHECK(averages[2][1] == -2);
}

TEST_CASE("a function combines elements in the order of the ranks, of any dtype") {
  // Three numbers mod 251; 7 * total + next depends on the order of combining.
  const velo_reduce_fn append = [](void* user, const void* next, void* total, std::int64_t count,
                                   const velo_dtype* dtype) {
    *static_cast<std::int64_t*>(user) += dtype->bits == 16 ? count : -1000000000;
    for (std::int64_t i = 0; i < count; ++i) {
      std::uint16_t a = 0, b = 0;
      std::memcpy(&a, static_cast<char*>(total) + 2 * i, 2);
      std::memcpy(&b, static_cast<const char*>(next) + 2 * i, 2);
      a = static_cast<std::uint16_t>((7 * a + b) % 251);
      std::memcpy(static_cast<char*>(total) + 2 * i, &a, 2);
    }
  };
  for (const int count : {1, 2, 3, 5}) {
    velo_group_desc desc = group_desc();
    desc.buffer = 32 << 10;
    const local_ranks ranks(count, desc);
    for (const std::int64_t size : {3, 60, 3000, 60001}) {
      INFO(count << " ranks, " << size);
      const auto has = [](int rank, std::int64_t i) {
        return static_cast<std::uint16_t>((31 * rank + 5 * i) % 251);
      };
      std::atomic<std::int64_t> wrong{0}, combined{0};
      ranks.require([&](const rank_of_group& me) {
        std::vector<std::uint16_t> x(static_cast<std::size_t>(size));
        for (std::int64_t i = 0; i < size; ++i) x[at(i)] = has(me.rank, i);
        std::int64_t elements = 0;
        velo_reduction how = VELO_REDUCTION_INIT;
        how.op = VELO_REDUCE_CUSTOM;
        how.fn = append;
        how.user = &elements;
        const velo_status done = reduce_in_place(me.stream, me.group, x, &how);
        combined += elements;
        for (std::int64_t i = 0; i < size; ++i) {
          int all = has(0, i);
          for (int r = 1; r < count; ++r) all = (7 * all + has(r, i)) % 251;
          wrong += x[at(i)] != all;
        }
        return done;
      });
      CHECK(wrong == 0);
      CHECK(combined >= (count - 1) * size);
    }
  }
  const local_ranks ranks(1);
  std::vector<float> x(2);
  velo_reduction how = VELO_REDUCTION_INIT;
  how.op = VELO_REDUCE_CUSTOM;
  CHECK_REFUSED(reduce_in_place(ranks.stream(0), ranks.group(0), x, &how), VELO_ERR_NULL,
                "reduction.fn");
  how.fn = append;
  how.scale = 2;
  CHECK_REFUSED(reduce_in_place(ranks.stream(0), ranks.group(0), x, &how), VELO_ERR_ARGUMENT,
                "reduction.scale");
}
