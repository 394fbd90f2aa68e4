// Collectives of bytes, composed of the functions that the host provides.
#include "comm/transport/host/engine.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "comm/transport/shared/rank_context.hpp"
#include "core/failure.hpp"
#include "core/index.hpp"
#include "core/round_up.hpp"

namespace velo::comm {
namespace {

using core::at;

std::int64_t sum_of(const std::vector<std::int64_t>& all) {
  std::int64_t sum = 0;
  for (const std::int64_t one : all) sum += one;
  return sum;
}

std::vector<std::int64_t> begins_of(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> all{0};
  for (const std::int64_t one : sizes) all.push_back(all.back() + one);
  return all;
}

void copy(const char* from, char* to, std::int64_t bytes) {
  if (bytes > 0) std::memmove(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace

void require_functions(const velo_host_collectives& table, const char* argument) {
  if ((table.send == nullptr) != (table.receive == nullptr))
    core::fail(VELO_ERR_NULL,
               core::text("%s.%s", argument, table.send == nullptr ? "send" : "receive"),
               "a function, since the other of send and receive is one", "NULL");
  if (table.all_gather == nullptr && table.all_to_all == nullptr && table.broadcast == nullptr &&
      table.send == nullptr)
    core::fail(VELO_ERR_NULL, core::text("%s.all_gather", argument),
               "a function, or all_to_all, broadcast, or send and receive", "NULL");
}

host_table::~host_table() {
  if (!is_used || functions.release == nullptr) return;
  try {
    functions.release(functions.user);
  } catch (...) {  // no caller is left to receive the failure
  }
}

host_engine::host_engine(std::shared_ptr<host_table> owner, int rank, int size,
                         std::int64_t timeout_ns)
    : rank(rank),
      size(size),
      owned(std::move(owner)),
      table(owned->functions),
      timeout_ns(std::min(timeout_ns, std::int64_t{1} << 60)),  // so that sums do not overflow
      gives(static_cast<std::size_t>(size)),
      takes(static_cast<std::size_t>(size)),
      late_(static_cast<std::size_t>(size)) {}

fault host_failure::as_fault(int rank) const {
  fault why;
  why.kind = late.lowest() >= 0 ? fault::how::late : fault::how::host;
  why.culprits = late;
  if (why.kind == fault::how::host) why.culprits.add(rank);
  core::copy_text(why.cause, sizeof why.cause, text);
  return why;
}

// The host may report this rank itself as late; it is left out.
void host_engine::fail_call(const char* name, const char* what, const char* why) const {
  host_failure report;
  std::snprintf(report.text, sizeof report.text, "%s %s%s%s", name, what, *why != 0 ? ": " : "",
                why);
  for (int peer = 0; peer < size; ++peer)
    if (peer != rank && late_[at(peer)] != 0) report.late.add(peer);
  throw report;
}

void host_engine::stage(std::size_t bytes) {
  const std::size_t ranks = static_cast<std::size_t>(size);
  const std::size_t least = trades() ? ranks * 1024 : std::max(ranks, std::size_t{16}) * ranks * 64;
  const std::size_t room = core::round_up(std::max(bytes, least), std::size_t{64});
  memory_.reset(new char[2 * room]);
  room_ = room;
}

// Calls a function of the host. Returns false if the function declined, as all_reduce may.
template <class Function>
bool host_engine::answer(const char* name, std::int64_t wanted, bool may_decline,
                         Function&& function) {
  char why[96] = "";
  std::fill(late_.begin(), late_.end(), std::uint8_t{0});
  const velo_host_call about{sizeof about, sizeof why, why,
                             std::max(until_ns_ - now_ns(), std::int64_t{1}), late_.data()};
  owned->is_used = true;
  std::int64_t got = 0;
  try {
    got = function(about);
  } catch (...) {
    fail_call(name, "threw an exception", core::current_failure().cause);
  }
  if (got == wanted) return true;
  if (may_decline && got == VELO_HOST_DECLINED) return false;
  why[sizeof why - 1] = 0;
  if (got < 0) fail_call(name, core::concat("returned ", got), why);
  fail_call(name, core::concat("returned ", got, " of ", wanted, " bytes"), why);
}

template <class Function>
void host_engine::call(const char* name, std::int64_t wanted, Function&& function) {
  answer(name, wanted, false, function);
}

void host_engine::share(std::int64_t bytes) {
  const auto place = [&](int of) { return out() + of * bytes; };
  if (table.all_gather != nullptr)
    return call("all_gather", size * bytes, [&](const velo_host_call& about) {
      return table.all_gather(table.user, &about, in(), out(), bytes);
    });
  if (table.all_to_all != nullptr) {
    for (int peer = 1; peer < size; ++peer) copy(in(), in() + peer * bytes, bytes);
    std::fill(gives.begin(), gives.end(), bytes);
    std::fill(takes.begin(), takes.end(), bytes);
    return trade(bytes);
  }
  copy(in(), place(rank), bytes);
  if (table.broadcast != nullptr) {
    for (int root = 0; root < size; ++root)
      call("broadcast", bytes, [&](const velo_host_call& about) {
        return table.broadcast(table.user, &about, root, place(root), bytes);
      });
    return;
  }
  by_pairs(
      [&](int peer) {
        call("send", bytes, [&](const velo_host_call& about) {
          return table.send(table.user, &about, peer, in(), bytes);
        });
      },
      [&](int peer) {
        call("receive", bytes, [&](const velo_host_call& about) {
          return table.receive(table.user, &about, peer, place(peer), bytes);
        });
      });
}

void host_engine::spread(int root, std::int64_t bytes) {
  if (table.broadcast == nullptr) {
    share(bytes);
    return copy(out() + root * bytes, out(), bytes);
  }
  if (rank == root) copy(in(), out(), bytes);
  call("broadcast", bytes, [&](const velo_host_call& about) {
    return table.broadcast(table.user, &about, root, out(), bytes);
  });
}

void host_engine::trade(std::int64_t most) {
  if (table.all_to_all != nullptr)
    return call("all_to_all", sum_of(takes), [&](const velo_host_call& about) {
      return table.all_to_all(table.user, &about, in(), gives.data(), out(), takes.data());
    });
  const std::vector<std::int64_t> from = begins_of(gives), to = begins_of(takes);
  if (has_messages()) {
    copy(in() + from[at(rank)], out() + to[at(rank)], takes[at(rank)]);
    return by_pairs(
        [&](int peer) {
          if (gives[at(peer)] == 0) return;
          call("send", gives[at(peer)], [&](const velo_host_call& about) {
            return table.send(table.user, &about, peer, in() + from[at(peer)], gives[at(peer)]);
          });
        },
        [&](int peer) {
          if (takes[at(peer)] == 0) return;
          call("receive", takes[at(peer)], [&](const velo_host_call& about) {
            return table.receive(table.user, &about, peer, out() + to[at(peer)], takes[at(peer)]);
          });
        });
  }
  // Every rank sends all its blocks to all ranks, padded to one size, and each takes the blocks
  // addressed to it.
  for (int peer = size; peer-- > 0;)
    copy(in() + from[at(peer)], in() + peer * most, gives[at(peer)]);
  share(size * most);
  for (int peer = 0; peer < size; ++peer)
    copy(out() + (peer * size + rank) * most, out() + to[at(peer)], takes[at(peer)]);
}

void host_engine::send(int to, std::int64_t bytes) {
  call("send", bytes, [&](const velo_host_call& about) {
    return table.send(table.user, &about, to, in(), bytes);
  });
}

void host_engine::receive(int from, std::int64_t bytes) {
  call("receive", bytes, [&](const velo_host_call& about) {
    return table.receive(table.user, &about, from, out(), bytes);
  });
}

void host_engine::all_reduce(const terms& what, std::int64_t count) {
  const velo_dtype dtype{what.in_code, what.in_bits, 1};
  const auto combine = [&](const velo_host_call& about) {
    return table.all_reduce(table.user, &about, what.reduction, &dtype, in(), out(), count);
  };
  declined = !answer("all_reduce", count * (what.in_bits / 8), true, combine);
}

void host_engine::make_part(const std::vector<std::int32_t>& ranks, host_table& made) {
  call("part", 0, [&](const velo_host_call& about) {
    return table.part(table.user, &about, ranks.data(), static_cast<std::int32_t>(ranks.size()),
                      &made.functions);
  });
  made.is_used = true;
}

}  // namespace velo::comm
