// Lists of tokens, and where they lie.
#include "sched/moe/host_routes.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace velo::sched {

using core::at;

namespace {

void sort_distinct(std::vector<std::int32_t>& all) {
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
}

std::int32_t place_in(const std::vector<std::int32_t>& sorted, std::int32_t token) {
  const auto found = std::lower_bound(sorted.begin(), sorted.end(), token);
  return static_cast<std::int32_t>(found - sorted.begin());
}

// Appends a part for the next rank.
void add_part(comm::blocks& all, std::int64_t count) {
  const std::int64_t begin = all.empty() ? 0 : host_routes::count_of(all);
  all.push_back({begin, count});
}

}  // namespace

host_routes::host_routes(const row_routes& of, std::vector<int> hosts)
    : hosts_(std::move(hosts)),
      rank_(of.layout().rank),
      needed_(hosts_.size()),
      own_(hosts_.size()),
      all_(hosts_.size() * hosts_.size()) {
  for (int rank = 0; rank < ranks(); ++rank) {
    ranks_of_.resize(std::max(ranks_of_.size(), at(host(rank)) + 1));
    ranks_of_[at(host(rank))].push_back(rank);
  }
  const std::int64_t top_k = of.layout().top_k;
  const std::vector<std::int32_t>& choices = of.received_choices();
  const auto token = [&](std::int64_t row) {
    return static_cast<std::int32_t>(choices[at(row)] / top_k);
  };
  for (int from = 0; from < ranks(); ++from) {
    std::vector<std::int32_t>& list = needed_[at(from)];
    const comm::block rows = of.received()[at(from)];
    for (std::int64_t i = rows.begin; i < rows.begin + rows.count; ++i) list.push_back(token(i));
    sort_distinct(list);
    own_[at(from)] = static_cast<std::int64_t>(list.size());
    for (std::int64_t i = rows.begin; i < rows.begin + rows.count; ++i) {
      sources_.push_back(from);
      places_of_rank_.push_back(place_in(list, token(i)));
    }
  }
  set_leaving(of);
}

int host_routes::passer(int of, int on_host) const {
  if (host(of) == on_host) return of;
  const auto& neighbors = ranks_of_[at(host(of))];
  const auto place = std::lower_bound(neighbors.begin(), neighbors.end(), of) - neighbors.begin();
  const auto& there = ranks_of_[at(on_host)];
  return there[static_cast<std::size_t>(place) % there.size()];
}

void host_routes::set_leaving(const row_routes& of) {
  std::vector<std::vector<std::int32_t>> to(hosts_.size());  // by passer
  for (std::int64_t t = 0; t < of.tokens(); ++t) {
    const row_routes::token_choices all = of.of_token(t);
    for (std::int64_t j = 0; j < all.count; ++j) {
      const int on = host(all.ranks[j]);
      if (on == host(rank_)) continue;
      std::vector<std::int32_t>& list = to[at(passer(rank_, on))];
      const auto token = static_cast<std::int32_t>(t);
      if (list.empty() || list.back() != token) list.push_back(token);
    }
  }
  for (const auto& each : to) {
    add_part(leaving_.parts, static_cast<std::int64_t>(each.size()));
    leaving_.tokens.insert(leaving_.tokens.end(), each.begin(), each.end());
  }
}

// The tokens that this rank needs of each passer, by the rank of the tokens.
host_routes::lists host_routes::needed() const {
  lists all;
  for (int by = 0; by < ranks(); ++by) {
    const std::int64_t before = all.count();
    for (int of = 0; of < ranks() && host(by) == host(rank_); ++of) {
      const std::vector<std::int32_t>& list = needed_[at(of)];
      if (passer(of, host(rank_)) == by)
        all.tokens.insert(all.tokens.end(), list.begin(), list.end());
    }
    add_part(all.parts, all.count() - before);
  }
  return all;
}

host_routes::lists host_routes::room_for_wanted() const {
  lists all;
  for (int to = 0; to < ranks(); ++to) {
    std::int64_t tokens = 0;
    for (int of = 0; of < ranks() && host(to) == host(rank_); ++of)
      if (passer(of, host(rank_)) == rank_) tokens += count(to, of);
    add_part(all.parts, tokens);
  }
  all.tokens.resize(at(count_of(all.parts)));
  return all;
}

// wanted: what each rank of this host wants of this one.
void host_routes::complete(const lists& wanted) {
  std::vector<std::vector<std::int32_t>> arrived(hosts_.size());  // by rank
  const auto each_wanted = [&](auto&& body) {  // body(to, of, begin and end of tokens)
    for (int to = 0; to < ranks(); ++to) {
      auto first = wanted.tokens.begin() + wanted.parts[at(to)].begin;
      for (int of = 0; of < ranks() && host(to) == host(rank_); ++of) {
        if (passer(of, host(rank_)) != rank_) continue;
        const auto last = first + count(to, of);
        body(to, of, first, last);
        first = last;
      }
    }
  };
  each_wanted([&](int, int of, auto first, auto last) {
    if (of != rank_) arrived[at(of)].insert(arrived[at(of)].end(), first, last);
  });
  for (auto& each : arrived) {
    sort_distinct(each);
    add_part(arriving_, static_cast<std::int64_t>(each.size()));
  }
  each_wanted([&](int, int of, auto first, auto last) {
    const auto begin = static_cast<std::int32_t>(arriving_[at(of)].begin);
    for (; first != last; ++first)
      passed_.tokens.push_back(of == rank_ ? -1 - *first
                                           : begin + place_in(arrived[at(of)], *first));
  });
  passed_.parts = wanted.parts;
  set_places();
}

void host_routes::set_places() {
  std::vector<std::int32_t> begin(hosts_.size());  // by the rank of tokens
  std::int32_t end = 0;
  for (int by = 0; by < ranks(); ++by) {
    const std::int32_t before = end;
    for (int of = 0; of < ranks() && host(by) == host(rank_); ++of)
      if (passer(of, host(rank_)) == by) {
        begin[at(of)] = end;
        end += static_cast<std::int32_t>(own_[at(of)]);
      }
    add_part(received_, end - before);
  }
  places_.reserve(sources_.size());
  for (std::size_t i = 0; i < sources_.size(); ++i)
    places_.push_back(begin[at(sources_[i])] + places_of_rank_[i]);
}

}  // namespace velo::sched
