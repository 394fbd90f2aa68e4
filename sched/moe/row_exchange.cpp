// Movements in place, the choice of a way, and the calls in the order of their group.
#include "sched/moe/row_exchange.hpp"

#include <new>

#include "sched/moe/row_mover.hpp"
#include "sched/moe/submit.hpp"

namespace velo::sched {
namespace {

// Ranks that see each other's tensors.
template <class T>
class shown_rows : row_mover<T> {
 public:
  using row_mover<T>::row_mover;
  void run(comm::operation& op);

 private:
  using row_mover<T>::what_;
  using row_mover<T>::routes_;
  using row_mover<T>::layout_;
  // The call of a rank, for the ranks that read its tensors.
  struct shown {
    const row_exchange* call;
    const float* products;  // by row of its experts
  };

  void take_rows(const shown* ranks, float* products, core::execution& turn) const;
  void collect_products(const shown* ranks, core::execution& turn) const;
};

template <class T>
void shown_rows<T>::take_rows(const shown* ranks, float* products, core::execution& turn) const {
  const ops::moe_token_kernels& kernels = token_kernels_of(turn);
  this->each_run(turn, [&](const expert_run& run, std::int64_t first, std::int64_t last) {
    if (run.is_padding()) return this->put_zeros(run, first, last);
    const row_exchange& theirs = *ranks[run.from].call;
    const std::int32_t* numbers = theirs.routes->order().data() + run.first;
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t token = numbers[i] / layout_.top_k;
      this->put_row(kernels, run.row + i, static_cast<const T*>(theirs.from) + token * this->n_,
                    !theirs.weighted ? 1 : theirs.weights[numbers[i]], products);
    }
  });
}

template <class T>
void shown_rows<T>::collect_products(const shown* ranks, core::execution& turn) const {
  std::fill_n(what_.dweights, routes_.tokens() * layout_.top_k, 0.0f);
  this->each_token(turn, 0, routes_.tokens(), [&](std::int64_t t, int) {
    const row_routes::token_choices all = routes_.of_token(t);
    for (std::int64_t j = 0; j < all.count; ++j)
      what_.dweights[all.numbers[j]] = ranks[all.ranks[j]].products[all.rows[j]];
  });
}

template <class T>
void shown_rows<T>::run(comm::operation& op) {
  float* products = this->take_products();
  op.in = new (this->template take<shown>(1)) shown{&what_, products};  // outlives a failure here
  op.set_count(1);
  const auto relay = this->link_.begin_relay(op, this->on_);
  auto* ranks = this->template take<shown>(layout_.ranks);
  const T** matrices = this->take_matrices(this->scratch_);
  // Everything that a rank shows is complete when it posts a piece.
  const auto with_all = [&](auto&& body) {
    relay->wait_slot();
    relay->post();
    relay->wait_piece();
    in_turn(this->on_, [&](core::execution& turn) {
      const comm::relay::tensor_access access(*relay);
      for (int r = 0; r < layout_.ranks; ++r) {
        ranks[r] = *static_cast<const shown*>(relay->peer_tensor(r));
        matrices[r] = static_cast<const T*>(ranks[r].call->from);
      }
      body(turn);
    });
    relay->release();
  };
  if (what_.direction == row_direction::to_tokens) {
    with_all([&](core::execution& turn) {
      this->sum_rows(turn, {routes_.rows_at(), 0, routes_.tokens(), nullptr, matrices});
    });
  } else {
    with_all([&](core::execution& turn) { take_rows(ranks, products, turn); });
    if (products != nullptr)
      with_all([&](core::execution& turn) { collect_products(ranks, turn); });
  }
  relay->wait_readers();
  relay->finish();
}

}  // namespace

const ops::moe_token_kernels& token_kernels_of(const core::execution& on) {
  const ops::kernel_list& all = ops::moe_token_kernel_list;
  int i = 0;
  while (i + 1 < all.count && (all.entries[i].isa > on.isa || on.optimization == 0)) ++i;
  return *static_cast<const ops::moe_token_kernels*>(all.entries[i].kernels);
}

void move_in_place(const row_exchange& what, const served_call& call) {
  ops::with_element_type(
      what.dtype, [&](auto element) { shown_rows<decltype(element)>(what, call).run(call.op); });
}

comm::operation row_exchange::request() const {
  comm::operation all;
  all.function = function;
  all.terms.kind = comm::collective::all_to_all;
  all.terms.in_code = all.terms.out_code = dtype.code;
  all.terms.in_bits = all.terms.out_bits = dtype.bits;
  all.terms.count = width;
  const std::uint64_t form =
      (direction == row_direction::to_experts ? 1u : 2u) + (weighted ? 4u : 0u);
  all.terms.require_same(comm::mixed(routes->hash() + form));
  all.bytes = routes->rows() * width * (dtype.bits / 8);
  return all;
}

void row_exchange::carry_out(const comm::group::ticket& place, core::execution& on) const {
  comm::operation op = request();
  among->serve(place, op, [&](comm::transport& link, core::arena& scratch) {
    const served_call call{op, link, scratch, on};
    if (link.size() > 1 && link.shows_tensors())
      move_in_place(*this, call);
    else if (link.size() > 1 && routes->maps_choices() && fits_relay(*this))
      move_by_relay(*this, call);
    else
      move_by_blocks(*this, call);
  });
}

void submit(core::stream& on, const row_exchange& what) {
  submit_in_order(on, what);
}

}  // namespace velo::sched
