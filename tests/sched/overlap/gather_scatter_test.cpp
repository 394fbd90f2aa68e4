// all_gather_matmul, matmul_reduce_scatter and both at once: against the calls composed, bit for
// bit, over ranks, dtypes and shapes; a step forward and back; what they refuse and what ends them.
#include "comm/processes.hpp"
#include "comm/ranks.hpp"
#include "tests/sched/overlap/matrices.hpp"

using namespace velo::testing;

namespace {

struct groups {
  velo_group gather = nullptr, scatter = nullptr;
};

// A rank's part of a layer: rows of x, and what fused and composed calls made of them.
struct part {
  matrix x, weight, y, gathered, composed, composed_gathered, whole;
  matrix beside, beside_gathered, composed_beside;
  bool transposed;
  std::int64_t slices = 3;
  const matrix* bias = nullptr;
  bool has_beside = true;

  part(velo_dtype dtype, std::int64_t s, std::int64_t n, std::int64_t k, int rank, int gathering,
       int scattering, bool transpose)
      : x(dtype, {s, 2, k}, 2 * rank),
        weight(dtype, transpose ? std::vector<std::int64_t>{n, k} : std::vector<std::int64_t>{k, n},
               2 * rank + 1),
        y(dtype, {s * gathering / scattering, 2, n}),
        gathered(dtype, {s * gathering, 2, k}),
        composed(dtype, {s * gathering / scattering, 2, n}),
        composed_gathered(dtype, {s * gathering, 2, k}),
        whole(dtype, {s * gathering, 2, n}),
        beside(dtype, {s * gathering / scattering, 2, n}, 100 + rank),
        beside_gathered(dtype, {s * gathering, 2, n}),
        composed_beside(dtype, {s * gathering, 2, n}),
        transposed(transpose) {}

  velo_status fused(velo_stream stream, const groups& in) const {
    const velo_tensor from = x.view(), by = weight.view(), to = y.view(), all = gathered.view();
    const velo_tensor row = bias == nullptr ? velo_tensor{} : bias->view();
    const velo_tensor* const added = bias == nullptr ? nullptr : &row;
    if (in.scatter == nullptr) {
      velo_all_gather_matmul_args args = VELO_ALL_GATHER_MATMUL_ARGS_INIT;
      args.group = in.gather, args.x = &from, args.weight = &by, args.y = &to;
      args.gathered = &all, args.transpose_weight = transposed, args.parallel_num = slices;
      args.bias = added;
      return velo_all_gather_matmul(stream, &args);
    }
    if (in.gather == nullptr) {
      velo_matmul_reduce_scatter_args args = VELO_MATMUL_REDUCE_SCATTER_ARGS_INIT;
      args.group = in.scatter, args.x = &from, args.weight = &by, args.y = &to;
      args.transpose_weight = transposed, args.parallel_num = slices, args.bias = added;
      return velo_matmul_reduce_scatter(stream, &args);
    }
    velo_all_gather_matmul_reduce_scatter_args args =
        VELO_ALL_GATHER_MATMUL_REDUCE_SCATTER_ARGS_INIT;
    args.gather_group = in.gather, args.scatter_group = in.scatter;
    args.x = &from, args.weight = &by, args.y = &to;
    args.gathered = &all, args.transpose_weight = transposed, args.parallel_num = slices;
    args.bias = added;
    const velo_tensor other = beside.view(), others = beside_gathered.view();
    if (has_beside) args.beside = &other, args.beside_gathered = &others;
    return velo_all_gather_matmul_reduce_scatter(stream, &args);
  }

  static bool is_crossed(const groups& in) { return in.gather != nullptr && in.scatter != nullptr; }
  bool has_bits_of_calls_apart(const groups& in) const {
    return y.same_bits(composed) &&
           (in.gather == nullptr || gathered.same_bits(composed_gathered)) &&
           (!is_crossed(in) || beside_gathered.same_bits(composed_beside)) && y.borders_kept() &&
           gathered.borders_kept() && beside_gathered.borders_kept();
  }

  velo_status apart(velo_stream stream, const groups& in) const {
    const velo_tensor from = x.view(), by = weight.view(), to = composed.view();
    const velo_tensor all = composed_gathered.view(), product = whole.view();
    velo_status done = VELO_OK;
    if (in.gather != nullptr) done = velo_group_all_gather(stream, in.gather, &from, &all);
    velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
    args.a = in.gather != nullptr ? &all : &from, args.b = &by;
    args.c = in.scatter != nullptr ? &product : &to, args.transpose_b = transposed;
    const velo_tensor added = bias == nullptr ? velo_tensor{} : bias->view();
    if (bias != nullptr && in.scatter == nullptr) args.bias = &added;
    if (done == VELO_OK) done = velo_matmul(stream, &args);
    if (done == VELO_OK && in.scatter != nullptr)
      done = velo_group_reduce_scatter(stream, in.scatter, nullptr, &product, &to);
    const velo_tensor other = beside.view(), others = composed_beside.view();
    if (done == VELO_OK && is_crossed(in))
      done = velo_group_all_gather(stream, in.scatter, &other, &others);
    return done;
  }
  // Adds the bias to the rounded sums that the calls apart left.
  void add_bias() {
    for (std::int64_t i = 0; i < composed.count(); ++i)
      composed.set(
          i, static_cast<float>(composed[i]) + static_cast<float>((*bias)[i % bias->count()]));
  }
};

groups groups_of(const two_groups& all, int rank, bool gathers, bool scatters) {
  return {gathers ? all.ranks.group(rank) : nullptr, scatters ? all.second(rank) : nullptr};
}

void require_equal(const two_groups& all, velo_dtype dtype, std::int64_t s, bool transpose,
                   bool gathers, bool scatters) {
  const int count = all.ranks.size();
  std::vector<std::unique_ptr<part>> parts;
  for (int rank = 0; rank < count; ++rank)
    parts.push_back(std::make_unique<part>(dtype, s, 24, 40, rank, gathers ? count : 1,
                                           scatters ? count : 1, transpose));
  const auto at = [&](int rank) -> const part& { return *parts[velo::testing::at(rank)]; };
  all.ranks.require([&](const rank_of_group& me) {
    return at(me.rank).fused(me.stream, groups_of(all, me.rank, gathers, scatters));
  });
  all.ranks.require([&](const rank_of_group& me) {
    return at(me.rank).apart(me.stream, groups_of(all, me.rank, gathers, scatters));
  });
  for (int rank = 0; rank < count; ++rank) {
    CHECK(at(rank).has_bits_of_calls_apart(groups_of(all, rank, gathers, scatters)));
  }
}

}  // namespace

TEST_CASE("gathered, multiplied, scattered: the bits of the calls composed") {
  for (const int count : {1, 2, 3, 4}) {
    velo_group_desc desc = group_desc();
    desc.buffer = 16 << 10;
    const two_groups all(count, desc);
    for (const velo_dtype dtype : {f32, bf16, f16})
      for (const std::int64_t s : {0, count, 12 * count})
        for (const bool transpose : {false, true})
          for (const int form : {1, 2, 3}) {
            INFO(count << " ranks, dtype " << int{dtype.code} << "." << int{dtype.bits} << ", " << s
                       << " rows, transposed " << transpose << ", form " << form);
            require_equal(all, dtype, s, transpose, (form & 1) != 0, (form & 2) != 0);
          }
  }
}

TEST_CASE("a bias is added in the product, and after a sum to it") {
  for (const int count : {1, 2, 3}) {
    const two_groups all(count);
    for (const char* level : {"0", "1", "2"}) {
      set_all(all.ranks, "level", level);
      for (const velo_dtype dtype : {f32, bf16, f16})
        for (const int form : {1, 2, 3}) {
          const bool gathers = (form & 1) != 0, scatters = (form & 2) != 0;
          const matrix bias(form == 3 ? f32 : dtype, {72}, 99);
          std::vector<std::unique_ptr<part>> parts;
          for (int rank = 0; rank < count; ++rank) {
            parts.push_back(std::make_unique<part>(dtype, 30, 72, 16, rank, gathers ? count : 1,
                                                   scatters ? count : 1, false));
            parts.back()->bias = &bias;
          }
          all.ranks.require([&](const rank_of_group& me) {
            const groups in = groups_of(all, me.rank, gathers, scatters);
            const velo_status done = parts[at(me.rank)]->fused(me.stream, in);
            return done == VELO_OK ? parts[at(me.rank)]->apart(me.stream, in) : done;
          });
          INFO(count << " ranks, level " << level << ", dtype " << int{dtype.code} << "."
                     << int{dtype.bits} << ", form " << form);
          for (const auto& one : parts) {
            if (scatters) one->add_bias();
            CHECK(one->y.same_bits(one->composed));
          }
        }
    }
  }
}

TEST_CASE("eight ranks and ranks of several threads gather and scatter to the same bits") {
  for (const auto& [count, threads] : {std::pair{8, 1}, {2, 3}, {3, 2}}) {
    const two_groups all(count, group_desc(), threads);
    for (const velo_dtype dtype : {f32, bf16, f16})
      for (const int form : {1, 2, 3}) {
        INFO(count << " ranks, " << threads << " threads, dtype " << int{dtype.code} << "."
                   << int{dtype.bits} << ", form " << form);
        require_equal(all, dtype, 600 / count * count, false, (form & 1) != 0, (form & 2) != 0);
      }
  }
}

TEST_CASE("gather and scatter are the same on queues, and keep the order of their groups") {
  const two_groups all(2);
  std::vector<std::unique_ptr<part>> parts;
  std::vector<velo_stream> one, two;
  for (int rank = 0; rank < 2; ++rank) {
    parts.push_back(std::make_unique<part>(f32, 30, 24, 40, rank, 2, 2, false));
    one.push_back(all.ranks.context(rank).new_stream());
    two.push_back(all.ranks.context(rank).new_stream());
  }
  all.ranks.require([&](int rank) {
    const groups in = groups_of(all, rank, true, true);
    for (int i = 0; i < 30; ++i) {
      velo_status done = parts[at(rank)]->fused(one[at(rank)], in);
      if (done == VELO_OK) done = velo_group_barrier(two[at(rank)], in.gather);
      if (done == VELO_OK) done = velo_group_barrier(two[at(rank)], in.scatter);
      if (done != VELO_OK) return done;
    }
    const velo_status done = velo_stream_synchronize(one[at(rank)]);
    return done != VELO_OK ? done : velo_stream_synchronize(two[at(rank)]);
  });
  all.ranks.require([&](const rank_of_group& me) {
    return parts[at(me.rank)]->apart(me.stream, groups_of(all, me.rank, true, true));
  });
  for (const auto& each : parts) CHECK(each->y.same_bits(each->composed));
}

TEST_CASE("processes get the bits of the calls composed, too") {
  for (const std::uint64_t buffer : {16 << 10, 512 << 10}) {
    processes ranks;
    velo_group_desc desc = group_desc();
    desc.buffer = buffer;  // of a small one rows of all ranks do not fit places of a relay
    ranks.start_all(3, desc, [](const rank_of_group& me) {
      velo_group second = nullptr;
      velo_status done = all_of_three(me.group, &second);
      ending all;
      for (const int form : {1, 2, 3}) {
        const groups in{(form & 1) != 0 ? me.group : nullptr, (form & 2) != 0 ? second : nullptr};
        const bool gathers = in.gather != nullptr;
        const part one(f32, 900, 24, 120, me.rank, gathers ? 3 : 1, in.scatter != nullptr ? 3 : 1,
                       form == 2);
        if (done == VELO_OK) done = one.fused(me.stream, in);
        if (done == VELO_OK) done = one.apart(me.stream, in);
        if (done != VELO_OK) return ending_of(done);
        all.value += one.has_bits_of_calls_apart(in) ? 0 : 1;
      }
      velo_group_destroy(second);
      all.code = VELO_OK;
      return all;
    });
    check_right(ranks.wait());
  }
}

TEST_CASE("rows beside the sum are the same at each level, in parts of any size, and alone") {
  for (const int count : {2, 3}) {
    const two_groups all(count);
    for (const char* level : {"0", "1", "2"}) {
      set_all(all.ranks, "level", level);
      for (const velo_dtype dtype : {f32, bf16}) {
        INFO(count << " ranks, level " << level << ", " << int{dtype.bits} << " bits");
        require_equal(all, dtype, 300 * count, false, true, true);
      }
    }
  }
  const local_ranks one(1);
  for (const bool has : {true, false}) {
    part lone(f32, 5, 24, 40, 0, 1, 1, false);
    lone.has_beside = has;
    const velo_tensor from = lone.x.view(), by = lone.weight.view(), to = lone.y.view(),
                      other = lone.beside.view(), others = lone.beside_gathered.view();
    velo_all_gather_matmul_reduce_scatter_args args =
        VELO_ALL_GATHER_MATMUL_REDUCE_SCATTER_ARGS_INIT;
    args.x = &from, args.weight = &by, args.y = &to;
    if (has) args.beside = &other, args.beside_gathered = &others;
    one.require([&](const rank_of_group& me) {
      return velo_all_gather_matmul_reduce_scatter(me.stream, &args);
    });
    CHECK(lone.beside_gathered.same_bits(lone.beside) == has);
  }
}

TEST_CASE("ranks that disagree about rows beside the sum get PEER, and wrong ones are refused") {
  const two_groups all(2);
  for (const char* level : {"1", "2"}) {
    const two_groups again(2);
    set_all(again.ranks, "level", level);
    std::vector<std::unique_ptr<part>> parts;
    for (int rank = 0; rank < 2; ++rank) {
      parts.push_back(std::make_unique<part>(f32, 300, 24, 40, rank, 2, 2, false));
      parts.back()->has_beside = rank == 0;
    }
    const std::vector<call_record> got = again.ranks.run([&](const rank_of_group& me) {
      return parts[at(me.rank)]->fused(me.stream, groups_of(again, me.rank, true, true));
    });
    for (const call_record& one : got) CHECK(one.code == VELO_ERR_PEER);
  }
  part wrong(f32, 4, 4, 8, 0, 2, 2, false);
  const part narrow(f32, 4, 3, 8, 0, 2, 2, false), half(bf16, 4, 4, 8, 0, 2, 2, false);
  const groups in = groups_of(all, 0, true, true);
  const auto refused = [&](const matrix& other, const matrix* others) {
    const velo_tensor from = wrong.x.view(), by = wrong.weight.view(), to = wrong.y.view(),
                      rows = other.view(),
                      received = others == nullptr ? velo_tensor{} : others->view();
    velo_all_gather_matmul_reduce_scatter_args args =
        VELO_ALL_GATHER_MATMUL_REDUCE_SCATTER_ARGS_INIT;
    args.gather_group = in.gather, args.scatter_group = in.scatter;
    args.x = &from, args.weight = &by, args.y = &to, args.beside = &rows;
    if (others != nullptr) args.beside_gathered = &received;
    return velo_all_gather_matmul_reduce_scatter(all.ranks.stream(0), &args);
  };
  CHECK_REFUSED(refused(narrow.beside, &wrong.beside_gathered), VELO_ERR_SHAPE,
                "args.beside.shape");
  CHECK_REFUSED(refused(half.beside, &wrong.beside_gathered), VELO_ERR_DTYPE, "args.beside.dtype");
  CHECK_REFUSED(refused(wrong.beside, &wrong.beside), VELO_ERR_SHAPE, "args.beside_gathered.shape");
}

TEST_CASE("gather and scatter name shapes that do not divide and groups that do not fit") {
  const two_groups all(2);
  const part odd(f32, 3, 4, 8, 0, 1, 2, false), even(f32, 4, 4, 8, 0, 2, 2, false);
  const velo_stream stream = all.ranks.stream(0);
  const call_record shape = record_of(odd.fused(stream, groups_of(all, 0, false, true)));
  CHECK_REFUSED(shape, VELO_ERR_SHAPE, "args.x.shape");
  CHECK(shape.expected == "a first dimension that divides by 2 ranks, or args.rows");
  CHECK(shape.got == "3");
  const matrix short_bias(f32, {3});
  part biased(f32, 4, 4, 8, 0, 2, 2, false);
  biased.bias = &short_bias;
  CHECK_REFUSED(biased.fused(stream, groups_of(all, 0, true, true)), VELO_ERR_SHAPE,
                "args.bias.shape");
  groups same = groups_of(all, 0, true, true);
  same.scatter = same.gather;
  CHECK_REFUSED(even.fused(stream, same), VELO_ERR_ARGUMENT, "args.scatter_group");
  groups others = groups_of(all, 1, true, true);
  // A layer that only gathers makes 8 rows of y, as this one does.
  const part wide(f32, 4, 4, 8, 0, 2, 1, false);
  CHECK_REFUSED(wide.fused(stream, {others.gather, nullptr}), VELO_ERR_ARGUMENT, "args.group");
  others.gather = groups_of(all, 0, true, false).gather;
  CHECK_REFUSED(even.fused(stream, others), VELO_ERR_ARGUMENT, "args.scatter_group");
  // None of these calls reached the other rank.
  require_equal(all, f32, 4, false, true, true);
}

TEST_CASE("a rank that does not come ends both groups of a call, and their handles go") {
  const two_groups all(2, group_desc(150));
  const part alone(f32, 4, 4, 8, 0, 2, 2, false);
  const groups in = groups_of(all, 0, true, true);
  const call_record failure = record_of(alone.fused(all.ranks.stream(0), in));
  CHECK(failure.code == VELO_ERR_PEER);
  CHECK(failure.rank == 1);
  CHECK(failure.expected.find("all_gather of 64 float32") == 0);
  CHECK(record_of(velo_group_barrier(all.ranks.stream(0), in.scatter)).code == VELO_ERR_PEER);
}
