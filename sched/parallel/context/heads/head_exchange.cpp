// Messages between neighbors.
#include "sched/parallel/context/heads/head_exchange.hpp"

#include "core/index.hpp"

namespace velo::sched {

head_exchange::head_exchange(const sequence_shape& of, exchange_shape how, std::vector<rows> lists)
    : of_(of), u_(how.neighbors), gathers_(how.gathers_keys), lists_(std::move(lists)) {}

const rows& head_exchange::list(std::int64_t ring_rank) const {
  return lists_[core::at(ring_rank)];
}

rows head_exchange::held(std::int64_t rank) const {
  const rows& all = list(rank / u_);
  return part_of(all, comm::uneven_share(size_of(all), u_, rank % u_));
}

std::vector<rows> head_exchange::all_held() const {
  std::vector<rows> all;
  for (std::int64_t r = 0; r < of_.ranks; ++r) all.push_back(held(r));
  return all;
}

span head_exchange::heads_of(std::int64_t member) const {
  return comm::uneven_share(of_.heads.queries, u_, member);
}

span head_exchange::key_heads_of(std::int64_t member) const {
  return of_.heads.keys_of(heads_of(member));
}

template <class Body>
void head_exchange::each_pair(const Body& body) const {
  for (std::int64_t from = 0; from < of_.ranks; ++from)
    for (std::int64_t member = 0; member < u_; ++member) {
      const std::int64_t to = from / u_ * u_ + member;
      if (to != from) body(from, to);
    }
}

void head_exchange::send_heads(attention_pass& pass, std::int64_t step,
                               std::initializer_list<content> what, bool kept) const {
  each_pair([&](std::int64_t from, std::int64_t to) {
    const rows of = held(from);
    const span keys = gathers_ ? span{0, of_.heads.keys} : key_heads_of(to % u_);
    for (const content one : what)
      if (!of.empty())
        pass.messages.push_back(
            {step, step + 1, from, to, one, of, is_of_keys(one) ? keys : heads_of(to % u_), kept});
  });
}

void head_exchange::send_back(attention_pass& pass, std::int64_t step,
                              std::initializer_list<content> what) const {
  each_pair([&](std::int64_t from, std::int64_t to) {
    const rows of = held(to);
    for (const content one : what)
      if (!of.empty())
        pass.messages.push_back({step, step + 1, from, to, one, of,
                                 is_of_keys(one) ? key_heads_of(from % u_) : heads_of(from % u_)});
  });
}

}  // namespace velo::sched
