// Sums over the two chunks of a zigzag. A causal sequence has two chunks for each rank of the ring:
// those of its first half have `first` rows, those of its second half `second` rows, and a rank of
// the ring holds one of each.
#include "sched/tune/context_cost.hpp"

#include <algorithm>

#include "core/round_up.hpp"
#include "sched/parallel/context/plan.hpp"

namespace velo::sched::tune {
namespace {

double triangle(double rows) {
  return rows * (rows + 1) / 2;
}

// The heads that a neighbor computes, and what it and the others exchange for them.
struct share {
  double queries, keys;
};

class pricing {
 public:
  explicit pricing(const context_shape& of)
      : of_(of),
        ring_(of.cp / of.ulysses),
        rows_(core::ceil_div(of.sequence, of.cp)),
        half_(rows_ * of.ulysses / 2),
        first_(static_cast<double>(rows_ * of.ulysses - half_)),
        second_(static_cast<double>(half_)),
        gradient_element_(of.keeps_all_keys ? of.element : 4) {  // else sums in float32
    for (std::int64_t member = 0; member < of.ulysses; ++member) {
      const comm::span heads = comm::uneven_share(of.heads, of.ulysses, member);
      const comm::span keys = head_counts{of.heads, of.kv_heads}.keys_of(heads);
      shares_.push_back({static_cast<double>(heads.size()), static_cast<double>(keys.size())});
      most_heads_ = std::max(most_heads_, shares_.back().queries);
      most_keys_ = std::max(most_keys_, shares_.back().keys);
    }
  }

  context_cost make() {
    if (of_.kind == VELO_SEQUENCE_ALL_GATHER)
      gather();
    else
      circulate();
    return std::move(cost_);
  }

 private:
  double key_and_value() const { return of_.key + of_.value; }

  void gather() {
    const auto ranks = static_cast<double>(of_.cp), heads = static_cast<double>(of_.heads);
    const double rows = static_cast<double>(of_.kv_heads) * (ranks - 1) * (first_ + second_);
    // The last rank has the last of the longer chunks, so it sees most.
    const double cells = first_ * (ranks - 1) * first_ + triangle(first_) +
                         second_ * ranks * first_ + triangle(second_);
    const context_phase keys = {1, 0, rows * key_and_value() * of_.element, context_way::all};
    const context_phase product = {1, heads * cells, 0, context_way::all};
    const context_phase back = {1, 0, rows * key_and_value() * gradient_element_, context_way::all};
    cost_.forward = {keys, product};
    cost_.gradient = {keys, product, back};
    cost_.buffers = keys.bytes + back.bytes;
    if (!of_.keeps_all_keys) return;
    cost_.gradient = {product, back};
    keep_all(static_cast<double>(of_.kv_heads));
  }

  void keep_all(double heads) {
    cost_.all_keys = static_cast<double>(rows_ * of_.cp) * heads * key_and_value() * of_.element;
  }

  // Ulysses, ring and hybrid: an exchange of heads around a ring, either of which may be of one.
  void circulate() {
    const double own = most_heads_ * (triangle(first_) + triangle(second_) + first_ * second_);
    const double other = most_heads_ * (first_ + second_) * first_;  // the longer chunk's rank
    const double keys = (first_ + second_) * most_keys_ * key_and_value() * of_.element;
    const double sums = (first_ + second_) * most_keys_ * key_and_value() * gradient_element_;
    const auto around = static_cast<double>(ring_);
    const auto add = [](std::vector<context_phase>& to, double steps, double cells, double bytes) {
      if (steps > 0) to.push_back({steps, cells, bytes, context_way::ring});
    };

    exchange_heads(cost_.forward, inputs());
    if (ring_ == 1) {
      add(cost_.forward, 1, own, 0);
    } else {
      add(cost_.forward, 1, own, keys);
      add(cost_.forward, around - 2, other, keys);
      add(cost_.forward, 1, other, 0);
    }
    exchange_heads(cost_.forward, outputs());

    // The gradient begins with the block that the forward ended with; a rank has its own block.
    exchange_heads(cost_.gradient, output_gradients());
    if (of_.keeps_all_keys) exchange_heads(cost_.gradient, outputs());  // kept by rows
    if (ring_ > 1) add(cost_.gradient, 1, other, ring_ > 2 ? keys : 0);
    if (ring_ > 2) {
      add(cost_.gradient, around - 3, other, keys + sums);
      add(cost_.gradient, 1, other, sums);
    }
    add(cost_.gradient, 1, own, ring_ > 1 ? sums : 0);
    exchange_heads(cost_.gradient, input_gradients());

    cost_.kept = most_received(inputs()) + (ring_ > 1 ? keys : 0);
    cost_.buffers = ring_ > 1 ? 2 * (keys + sums) : 0;
    if (of_.ulysses > 1)
      cost_.buffers += most_moved(output_gradients()) + most_moved(input_gradients());
    if (!of_.keeps_all_keys) return;
    cost_.kept = 0;  // queries take the place of the rank's own
    keep_all(most_keys_);
  }

  // The bytes that neighbors exchange for a row, by the member that computes the heads. The member
  // gets them from the others, or returns them.
  using head_bytes = std::vector<double>;
  template <class Bytes>
  head_bytes each_head(const Bytes& bytes) const {
    head_bytes all;
    for (const share& one : shares_) all.push_back(bytes(one));
    return all;
  }
  head_bytes inputs() const {
    return each_head([&](const share& s) {
      return (s.queries * of_.key + s.keys * key_and_value()) * of_.element;
    });
  }
  head_bytes outputs() const {
    return each_head([&](const share& s) { return s.queries * of_.value * of_.element; });
  }
  head_bytes output_gradients() const {
    return each_head([&](const share& s) { return s.queries * of_.value * of_.element; });
  }
  head_bytes input_gradients() const {
    return each_head([&](const share& s) {
      return s.queries * of_.key * of_.element + s.keys * key_and_value() * gradient_element_;
    });
  }

  double rows_of_rank() const { return static_cast<double>(rows_); }
  // The most bytes that a member exchanges with all other neighbors for its own heads.
  double most_received(const head_bytes& of) const {
    return (static_cast<double>(of_.ulysses) - 1) * rows_of_rank() *
           *std::max_element(of.begin(), of.end());
  }
  // The most bytes that a member exchanges for its own heads, or for the heads of the others.
  double most_moved(const head_bytes& of) const {
    double sum = 0;
    for (const double one : of) sum += one;
    const double others = sum - *std::min_element(of.begin(), of.end());
    return std::max(most_received(of), rows_of_rank() * others);
  }
  void exchange_heads(std::vector<context_phase>& to, const head_bytes& of) const {
    if (of_.ulysses > 1) to.push_back({1, 0, most_moved(of), context_way::neighbors});
  }

  const context_shape& of_;
  const std::int64_t ring_, rows_, half_;  // ranks; rows of a rank; of a shorter chunk
  const double first_, second_;
  const double gradient_element_;  // bytes of an element of dk and dv that travels
  std::vector<share> shares_;
  double most_heads_ = 0, most_keys_ = 0;
  context_cost cost_;
};

template <class Number>
double sum_of(const std::vector<context_phase>& pass, const Number& number) {
  double sum = 0;
  for (const context_phase& one : pass) sum += one.steps * number(one);
  return sum;
}

}  // namespace

context_cost context_cost_of(const context_shape& of) {
  return pricing(of).make();
}

double cells_of(const std::vector<context_phase>& pass) {
  return sum_of(pass, [](const context_phase& one) { return one.cells; });
}
double bytes_of(const std::vector<context_phase>& pass) {
  return sum_of(pass, [](const context_phase& one) { return one.bytes; });
}

}  // namespace velo::sched::tune
