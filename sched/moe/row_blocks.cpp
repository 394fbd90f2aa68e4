// Movements by collectives. By all-to-all rows are packed by expert before it, and put in their
// places after it. By all-gather every rank gets the tokens of all, and copies the rows of its
// experts out of them; rows come back by all-to-all, since sums of parts would have other bits for
// other numbers of ranks. The kind hierarchical sends a token once to each host that has an expert
// of it, where it is passed on (host_routes.hpp).
#include "core/tensor/dtype.hpp"
#include "sched/moe/host_routes.hpp"
#include "sched/moe/row_mover.hpp"

namespace velo::sched {
namespace {

using core::at;

struct sent_rows {
  velo_dtype dtype;
  std::int64_t width;
  const void* in;
  void* out;
};

// An all-to-all of `width` elements a row. in, out: rows for and of each rank.
void exchange(const served_call& call, const comm::blocks& in, const comm::blocks& out,
              const sent_rows& rows) {
  comm::operation op;
  op.function = call.op.function;
  op.terms = call.op.terms;
  op.terms.in_code = op.terms.out_code = rows.dtype.code;
  op.terms.in_bits = op.terms.out_bits = rows.dtype.bits;
  op.in = rows.in, op.out = rows.out;
  for (int r = 0; r < call.link.size(); ++r) {
    op.in_blocks.push_back({in[at(r)].begin * rows.width, in[at(r)].count * rows.width});
    op.out_blocks.push_back({out[at(r)].begin * rows.width, out[at(r)].count * rows.width});
    op.out_count += out[at(r)].count * rows.width;
  }
  op.set_count(op.in_block(call.link.rank()).count);
  call.link.run(op, call.on);
}

// An all-to-all from the order of choices to received rows, or back.
void exchange(const row_routes& routes, const served_call& call, bool back, const sent_rows& rows) {
  exchange(call, back ? routes.received() : routes.given(),
           back ? routes.given() : routes.received(), rows);
}

// Rows of the list, from `own` where they are negative, else from `others`.
void copy_listed(core::execution& turn, const std::vector<std::int32_t>& list,
                 std::int64_t row_bytes, const std::byte* own, const std::byte* others,
                 std::byte* to) {
  const ops::row_slices slices = ops::slice_rows(static_cast<std::int64_t>(list.size()), row_bytes);
  turn.threads.slices(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = slices.begin(task);
    for (std::int64_t i = first; i < first + slices.count(task); ++i) {
      const std::int64_t row = list[at(i)];
      const std::byte* from = row < 0 ? own + (-1 - row) * row_bytes : others + row * row_bytes;
      std::memcpy(to + i * row_bytes, from, at(row_bytes));
    }
  });
}

// Returns the tokens that this rank's experts need, as host_routes.hpp has them.
const std::byte* pass_over_hosts(const row_exchange& what, const served_call& call) {
  const host_routes& ways = *what.routes->over_hosts();
  const std::int64_t row_bytes = what.width * (what.dtype.bits / 8);
  const auto take = [&](std::int64_t rows) {
    return take_some<std::byte>(call.scratch, rows * row_bytes);
  };
  const auto* own = static_cast<const std::byte*>(what.from);
  std::byte* leaving = take(ways.leaving().count());
  std::byte* arrived = take(host_routes::count_of(ways.arriving()));
  std::byte* passed = take(ways.passed().count());
  std::byte* received = take(host_routes::count_of(ways.received()));
  const auto copy = [&](const host_routes::lists& of, const std::byte* others, std::byte* to) {
    if (row_bytes == 0) return;
    in_turn(call.on, [&](core::execution& turn) {
      copy_listed(turn, of.tokens, row_bytes, own, others, to);
    });
  };
  copy(ways.leaving(), own, leaving);
  exchange(call, ways.leaving().parts, ways.arriving(), {what.dtype, what.width, leaving, arrived});
  copy(ways.passed(), arrived, passed);
  exchange(call, ways.passed().parts, ways.received(), {what.dtype, what.width, passed, received});
  return received;
}

// What one token of each rank has, of all ranks: `width` elements a token.
void gather(const row_routes& routes, const served_call& call, const sent_rows& of) {
  comm::operation op;
  op.function = call.op.function;
  op.terms = call.op.terms;
  op.terms.kind = comm::collective::all_gather;
  op.terms.in_code = op.terms.out_code = of.dtype.code;
  op.terms.in_bits = op.terms.out_bits = of.dtype.bits;
  op.in = of.in, op.out = of.out;
  for (int r = 0; r < routes.layout().ranks; ++r) {
    const std::int64_t elements = routes.tokens_of(r) * of.width;
    op.out_blocks.push_back({op.out_count, elements});
    op.out_count += elements;
  }
  op.set_count(routes.tokens() * of.width);
  call.link.run(op, call.on);
}

template <class T>
class sent_by_rank : row_mover<T> {
 public:
  sent_by_rank(const row_exchange& what, const served_call& call)
      : row_mover<T>(what, call), call_(call) {}

  void to_experts() const {
    const std::int64_t given = routes_.given_rows(), got = routes_.received_rows();
    const bool weighted = what_.weighted, passes = routes_.over_hosts() != nullptr;
    float* packed_weights = weighted ? this->template take<float>(given) : nullptr;
    float* weights = weighted ? this->template take<float>(got) : nullptr;
    float* products = this->take_products();
    T* packed = passes ? nullptr : this->template take<T>(given * this->n_);
    in_turn(this->on_, [&](core::execution& turn) { pack(turn, packed, packed_weights); });
    const T* rows =
        passes ? reinterpret_cast<const T*>(pass_over_hosts(what_, call_)) : exchanged(packed, got);
    if (weighted) exchange(routes_, call_, false, {core::f32, 1, packed_weights, weights});
    in_turn(this->on_, [&](core::execution& turn) { put(turn, rows, weights, products); });
    if (products != nullptr) return_products(what_, call_, products);
  }

  void gather_to_experts() const {
    std::int64_t tokens = 0;
    for (int r = 0; r < routes_.layout().ranks; ++r) tokens += routes_.tokens_of(r);
    const std::int64_t top_k = routes_.layout().top_k;
    T* all = this->template take<T>(tokens * this->n_);
    float* weights = what_.weighted ? this->template take<float>(tokens * top_k) : nullptr;
    float* products = this->take_products();
    gather(routes_, call_, {what_.dtype, this->n_, this->from(), all});
    if (weights != nullptr) gather(routes_, call_, {core::f32, top_k, what_.weights, weights});
    in_turn(this->on_, [&](core::execution& turn) { put_gathered(turn, all, weights, products); });
    if (products != nullptr) return_products(what_, call_, products);
  }

  void to_tokens() const {
    T* packed = this->template take<T>(routes_.received_rows() * this->n_);
    T* rows = this->template take<T>(routes_.given_rows() * this->n_);
    in_turn(this->on_, [&](core::execution& turn) {
      this->each_run(turn, [&](const expert_run& run, std::int64_t first, std::int64_t last) {
        if (run.is_padding()) return;
        this->copy_rows(this->from() + (run.row + first) * this->n_,
                        packed + (run.received + first) * this->n_, last - first);
      });
    });
    exchange(routes_, call_, true, {what_.dtype, this->n_, packed, rows});
    in_turn(this->on_, [&](core::execution& turn) {
      this->sum_rows(turn, {routes_.entries(), 0, routes_.tokens(), rows, nullptr});
    });
  }

 private:
  using row_mover<T>::what_;
  using row_mover<T>::routes_;

  const T* exchanged(const T* packed, std::int64_t got) const {
    T* rows = this->template take<T>(got * this->n_);
    exchange(routes_, call_, false, {what_.dtype, this->n_, packed, rows});
    return rows;
  }

  // packed, weights: nullptr: not wanted.
  void pack(core::execution& turn, T* packed, float* weights) const {
    this->each_token(turn, 0, routes_.tokens(), [&](std::int64_t t, int) {
      const row_routes::token_choices all = routes_.of_token(t);
      for (std::int64_t j = 0; j < all.count; ++j) {
        if (packed != nullptr)
          this->copy_rows(this->from() + t * this->n_, packed + all.entries[j] * this->n_, 1);
        if (weights != nullptr) weights[all.entries[j]] = what_.weights[all.numbers[j]];
      }
    });
  }

  void put(core::execution& turn, const T* rows, const float* weights, float* products) const {
    const ops::moe_token_kernels& kernels = token_kernels_of(turn);
    const host_routes* ways = routes_.over_hosts();
    this->each_run(turn, [&](const expert_run& run, std::int64_t first, std::int64_t last) {
      if (run.is_padding()) return this->put_zeros(run, first, last);
      for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t at_rank = run.received + i;
        const std::int64_t from = ways == nullptr ? at_rank : ways->places()[at(at_rank)];
        this->put_row(kernels, run.row + i, rows + from * this->n_,
                      weights == nullptr ? 1 : weights[at_rank], products);
      }
    });
  }

  void put_gathered(core::execution& turn, const T* tokens, const float* weights,
                    float* products) const {
    const ops::moe_token_kernels& kernels = token_kernels_of(turn);
    const std::int64_t top_k = routes_.layout().top_k;
    auto* first = take_some<std::int64_t>(turn.scratch, routes_.layout().ranks);  // token of a rank
    std::int64_t begin = 0;
    for (int r = 0; r < routes_.layout().ranks; ++r) {
      first[r] = begin;
      begin += routes_.tokens_of(r);
    }
    this->each_run(turn, [&](const expert_run& run, std::int64_t i, std::int64_t last) {
      if (run.is_padding()) return this->put_zeros(run, i, last);
      for (; i < last; ++i) {
        const std::int64_t choice =
            first[run.from] * top_k + routes_.received_choices()[at(run.received + i)];
        this->put_row(kernels, run.row + i, tokens + choice / top_k * this->n_,
                      weights == nullptr ? 1 : weights[choice], products);
      }
    });
  }

  const served_call& call_;
};

}  // namespace

void return_products(const row_exchange& what, const served_call& call, const float* products) {
  const row_routes& routes = *what.routes;
  float* packed = take_some<float>(call.scratch, routes.received_rows());
  float* got = take_some<float>(call.scratch, routes.given_rows());
  for (const expert_run& run : routes.runs())
    if (!run.is_padding()) std::copy_n(products + run.row, run.count, packed + run.received);
  exchange(routes, call, true, {core::f32, 1, packed, got});
  std::fill_n(what.dweights, routes.tokens() * routes.layout().top_k, 0.0f);
  for (std::int64_t i = 0; i < routes.given_rows(); ++i)
    what.dweights[routes.order()[at(i)]] = got[i];
}

void move_by_blocks(const row_exchange& what, const served_call& call) {
  ops::with_element_type(what.dtype, [&](auto element) {
    const sent_by_rank<decltype(element)> mover(what, call);
    if (what.direction == row_direction::to_tokens)
      mover.to_tokens();
    else if (what.routes->maps_choices() && what.routes->layout().kind == VELO_DISPATCH_ALL_GATHER)
      mover.gather_to_experts();
    else
      mover.to_experts();
  });
}

}  // namespace velo::sched
