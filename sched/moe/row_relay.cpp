// Movements through the shared slots of a relay (comm/transport/shared/relay.hpp), in pieces of the
// tokens of all ranks.
//
// To experts: a rank writes the tokens of a piece that others need, each once, with a list of the
// rows that each rank makes of them; it makes its own rows meanwhile, and the others read theirs.
// To tokens: a rank writes the rows of its experts for the other ranks' tokens of a piece, in the
// order of tokens and choices, in which the ranks read them as they sum. Piece p has the tokens
// from p P to before (p + 1) P of every rank. Invariant: P is the same on all ranks, so a piece is
// complete for its tokens. Cost: a row that goes to another rank is written and read once besides
// its tensors.
#include <utility>

#include "core/round_up.hpp"
#include "sched/moe/row_mover.hpp"

namespace velo::sched {
namespace {

using core::at;

// Half of the slots is read while the other half is written.
constexpr std::int64_t ahead = comm::relay::slots / 2;
// Pieces of this size are still in the cache of the rank that wrote them.
constexpr std::int64_t wanted_bytes = std::int64_t{1} << 19;

// A row that a rank makes of a token of a piece.
struct piece_row {
  std::int32_t token;  // among those in the slot
  std::int32_t row;    // at its expert's rank
  float weight;
};

// The parts of a slot: where the list of each rank begins, and the end of the last; lists; rows.
struct piece_form {
  std::int64_t tokens;       // of each rank in a piece; below 1: a slot has no room for one
  std::int64_t lists, rows;  // offsets

  piece_form(const row_exchange& what, std::int64_t slot) {
    const expert_layout& of = what.routes->layout();
    // No slot has room for a row as large as itself; the limit keeps the product below small.
    const std::int64_t row = std::min(what.width * (what.dtype.bits / 8), slot);
    const bool lists_rows = what.direction == row_direction::to_experts;
    const std::int64_t list = lists_rows ? of.top_k * std::int64_t{sizeof(piece_row)} : 0;
    const std::int64_t each = list + row * (lists_rows ? 1 : (of.ranks - 1) * of.top_k);
    lists = core::round_up(std::int64_t{4} * (of.ranks + 1), line);
    const std::int64_t room = slot - lists - line, least = room / std::max<std::int64_t>(each, 1);
    const std::int64_t wanted =
        std::max<std::int64_t>(wanted_bytes / std::max<std::int64_t>(each, 1), 1);
    tokens = std::min(least, wanted);
    rows = lists + core::round_up(tokens * list, line);
  }

 private:
  static constexpr std::int64_t line = 64;
};

template <class T>
class relayed_rows : row_mover<T> {
 public:
  relayed_rows(const row_exchange& what, const served_call& call)
      : row_mover<T>(what, call), call_(call), form_(what, call.link.relay_slot_bytes()) {
    std::int64_t most = 0;
    for (int rank = 0; rank < layout_.ranks; ++rank) most = std::max(most, routes_.tokens_of(rank));
    pieces_ = core::ceil_div(most, form_.tokens);
  }

  void to_experts() {
    float* products = this->take_products();
    in_turn(this->on_, [&](core::execution& turn) { put_padding(turn); });
    in_pieces([&](core::execution& turn, std::int64_t piece,
                  char* slot) { write_tokens(turn, piece, slot, products); },
              [&](core::execution& turn, std::int64_t, const comm::relay& relay) {
                for (int rank = 0; rank < layout_.ranks; ++rank)
                  if (rank != layout_.rank) take_rows(turn, relay.piece(rank), products);
              });
    if (products != nullptr) return_products(what_, call_, products);
  }

  void to_tokens() {
    in_pieces([&](core::execution& turn, std::int64_t piece,
                  char* slot) { write_rows(turn, piece, slot); },
              [&](core::execution& turn, std::int64_t piece, const comm::relay& relay) {
                sum_piece(turn, piece, relay);
              });
  }

 private:
  using row_mover<T>::what_;
  using row_mover<T>::routes_;
  using row_mover<T>::layout_;
  using row_mover<T>::n_;

  // write(turn, piece, slot), and read(turn, piece, relay).
  template <class Write, class Read>
  void in_pieces(const Write& write, const Read& read) {
    const auto relay = this->link_.begin_relay(call_.op, this->on_);
    std::int64_t written = 0;
    for (std::int64_t piece = 0; piece < pieces_; ++piece) {
      for (; written < std::min(pieces_, piece + ahead); ++written) {
        relay->wait_slot();
        in_turn(this->on_, [&](core::execution& turn) { write(turn, written, relay->slot()); });
        relay->post();
      }
      relay->wait_piece();
      in_turn(this->on_, [&](core::execution& turn) { read(turn, piece, *relay); });
      relay->release();
    }
    relay->wait_readers();
    relay->finish();
  }

  struct token_range {
    std::int64_t first, last;
    std::int64_t count() const { return last - first; }
  };
  token_range tokens_in(std::int64_t piece, int rank) const {
    const std::int64_t all = routes_.tokens_of(rank);
    return {std::min(piece * form_.tokens, all), std::min((piece + 1) * form_.tokens, all)};
  }
  bool is_own(int rank) const { return rank == layout_.rank; }

  // body(i): rows of a list, in tasks of some 64 KB.
  template <class Body>
  void each_row(core::execution& turn, std::int64_t count, const Body& body) const {
    const ops::row_slices slices =
        ops::slice_rows(count, static_cast<std::int64_t>(this->row_bytes()));
    turn.threads.slices(slices.tasks(), [&](std::int64_t task, int) {
      const std::int64_t first = slices.begin(task);
      for (std::int64_t i = first; i < first + slices.count(task); ++i) body(i);
    });
  }

  void put_padding(core::execution& turn) const {
    if (!routes_.is_padded()) return;
    this->each_run(turn, [&](const expert_run& run, std::int64_t first, std::int64_t last) {
      if (run.is_padding()) this->put_zeros(run, first, last);
    });
  }

  // ---- to experts ----

  void write_tokens(core::execution& turn, std::int64_t piece, char* slot, float* products) const {
    const ops::moe_token_kernels& kernels = token_kernels_of(turn);
    const token_range range = tokens_in(piece, layout_.rank);
    auto* places = take_some<std::int32_t>(turn.scratch, range.count());
    list_rows(range, slot, places);
    auto* rows = reinterpret_cast<T*>(slot + form_.rows);
    this->each_token(turn, range.first, range.last, [&](std::int64_t t, int) {
      const T* x = this->from() + t * n_;
      const std::int32_t place = places[t - range.first];
      if (place >= 0) this->copy_rows(x, rows + place * n_, 1);
      const row_routes::token_choices all = routes_.of_token(t);
      for (std::int64_t j = 0; j < all.count; ++j)
        if (is_own(all.ranks[j]))
          this->put_row(kernels, all.rows[j], x, weight_of(all.numbers[j]), products);
    });
  }
  float weight_of(std::int32_t choice) const { return what_.weighted ? what_.weights[choice] : 1; }

  // Writes the lists of a piece. places: receives the place of each token in the slot, or -1.
  void list_rows(const token_range& range, char* slot, std::int32_t* places) const {
    auto* begins = reinterpret_cast<std::int32_t*>(slot);
    std::fill_n(begins, layout_.ranks + 1, 0);
    for_remote(range, [&](std::int64_t, std::int64_t, const row_routes::token_choices& all,
                          std::int64_t j) { ++begins[all.ranks[j]]; });
    std::int32_t end = 0;
    for (int rank = 0; rank <= layout_.ranks; ++rank) end += std::exchange(begins[rank], end);
    auto* lists = reinterpret_cast<piece_row*>(slot + form_.lists);
    std::fill_n(places, range.last - range.first, -1);
    for_remote(range, [&](std::int64_t t, std::int64_t place, const row_routes::token_choices& all,
                          std::int64_t j) {
      places[t - range.first] = static_cast<std::int32_t>(place);
      lists[begins[all.ranks[j]]++] = {static_cast<std::int32_t>(place), all.rows[j],
                                       weight_of(all.numbers[j])};
    });
    // Each beginning has become its end.
    for (int rank = layout_.ranks; rank > 0; --rank) begins[rank] = begins[rank - 1];
    begins[0] = 0;
  }

  // f(token, place in the slot, choices of the token, j): the choices of experts of other ranks.
  template <class F>
  void for_remote(const token_range& range, const F& f) const {
    std::int64_t place = 0;
    for (std::int64_t t = range.first; t < range.last; ++t) {
      const row_routes::token_choices all = routes_.of_token(t);
      bool any = false;
      for (std::int64_t j = 0; j < all.count; ++j)
        if (!is_own(all.ranks[j])) f(t, place, all, j), any = true;
      place += any ? 1 : 0;
    }
  }

  void take_rows(core::execution& turn, const char* piece, float* products) const {
    const ops::moe_token_kernels& kernels = token_kernels_of(turn);
    const auto* begins = reinterpret_cast<const std::int32_t*>(piece);
    const auto* list =
        reinterpret_cast<const piece_row*>(piece + form_.lists) + begins[layout_.rank];
    const auto* rows = reinterpret_cast<const T*>(piece + form_.rows);
    each_row(turn, begins[layout_.rank + 1] - begins[layout_.rank], [&](std::int64_t i) {
      this->put_row(kernels, list[i].row, rows + list[i].token * n_, list[i].weight, products);
    });
  }

  // ---- to tokens ----

  void write_rows(core::execution& turn, std::int64_t piece, char* slot) const {
    auto* begins = reinterpret_cast<std::int32_t*>(slot);
    std::int64_t most = 0;
    for (int rank = 0; rank < layout_.ranks; ++rank) most += tokens_in(piece, rank).count();
    auto* list = take_some<std::int32_t>(turn.scratch, most * layout_.top_k);
    std::int32_t count = 0;
    for (int rank = 0; rank < layout_.ranks; ++rank) {
      begins[rank] = count;
      const token_range range = tokens_in(piece, rank);
      const std::int32_t* of_choices = routes_.rows_of_choices(rank);
      if (is_own(rank)) continue;
      for (std::int64_t i = range.first * layout_.top_k; i < range.last * layout_.top_k; ++i)
        if (of_choices[i] != row_routes::no_row) list[count++] = of_choices[i];
    }
    begins[layout_.ranks] = count;
    auto* rows = reinterpret_cast<T*>(slot + form_.rows);
    each_row(turn, count, [&](std::int64_t i) {
      this->copy_rows(this->from() + list[i] * n_, rows + i * n_, 1);
    });
  }

  void sum_piece(core::execution& turn, std::int64_t piece, const comm::relay& relay) const {
    const token_range range = tokens_in(piece, layout_.rank);
    const T** matrices = this->take_matrices(turn.scratch);
    for (int rank = 0; rank < layout_.ranks; ++rank) {
      const char* slot = relay.piece(rank);
      matrices[rank] = is_own(rank)
                           ? this->from()
                           : reinterpret_cast<const T*>(slot + form_.rows) +
                                 reinterpret_cast<const std::int32_t*>(slot)[layout_.rank] * n_;
    }
    const std::int64_t begin = routes_.choices_before(range.first),
                       count = routes_.choices_before(range.last) - begin;
    auto* rows = take_some<std::int32_t>(turn.scratch, count);
    auto* next = take_some<std::int32_t>(turn.scratch, layout_.ranks);
    std::fill_n(next, layout_.ranks, 0);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int32_t rank = routes_.ranks_at()[begin + i];
      rows[i] = is_own(rank) ? routes_.rows_at()[begin + i] : next[rank]++;
    }
    this->sum_rows(turn, {rows, range.first, range.last, nullptr, matrices});
  }

  const served_call& call_;
  const piece_form form_;
  std::int64_t pieces_ = 0;
};

}  // namespace

bool fits_relay(const row_exchange& what) {
  return piece_form(what, what.among->relay_slot_bytes()).tokens > 0;
}

void move_by_relay(const row_exchange& what, const served_call& call) {
  ops::with_element_type(what.dtype, [&](auto element) {
    relayed_rows<decltype(element)> mover(what, call);
    if (what.direction == row_direction::to_experts)
      mover.to_experts();
    else
      mover.to_tokens();
  });
}

}  // namespace velo::sched
