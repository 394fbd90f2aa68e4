// The same ranks over every transport: threads, processes, the messages of MPI (by a plugin of the
// tests whose ranks are threads, on one host or as if on two), and the functions of a host.
#pragma once

#include "comm/processes.hpp"
#include "comm/transport/host/host_ranks.hpp"
#include "comm/transport/mpi/mpi_threads.hpp"

namespace velo::testing {

// How a rank's work ended, and whatever number the test asks for.
struct outcome : call_record {
  std::int64_t value = 0;
};
struct answer {
  velo_status code = VELO_OK;
  std::int64_t value = 0;
};
using rank_body = std::function<answer(const rank_of_group& me)>;

inline outcome outcome_of(const rank_body& body, const rank_of_group& me) {
  const answer one = body(me);
  return {record_of(one.code), one.value};
}

inline std::vector<outcome> over_threads(int size, std::int64_t timeout_ms, const rank_body& body) {
  const local_ranks ranks(size, group_desc(timeout_ms));
  std::vector<outcome> all(at(size));
  ranks.run([&](int rank) {
    const rank_of_group me{nullptr, ranks.stream(rank), ranks.group(rank), rank, size, false};
    all[at(rank)] = outcome_of(body, me);
    return velo_status{VELO_OK};
  });
  return all;
}

inline std::vector<outcome> over_processes(int size, std::int64_t timeout_ms,
                                           const rank_body& body) {
  processes ranks;
  ranks.start_all(size, group_desc(timeout_ms), [&](const rank_of_group& by) {
    const rank_of_group me{by.context, by.stream, by.group, by.rank, by.size, false};
    const answer one = body(me);
    ending report = ending_of(one.code);
    report.value = one.value;
    return report;
  });
  std::vector<outcome> all;
  for (const ending& one : ranks.wait()) all.push_back({one, one.value});
  return all;
}

inline std::vector<outcome> over_a_host_with(const char* functions, int size,
                                             std::int64_t timeout_ms, const rank_body& body) {
  fake_host host(size, functions);
  std::vector<outcome> all(at(size));
  on_ranks(host, timeout_ms, [&](const rank_of_group& me) {
    all[at(me.rank)] = outcome_of(body, me);
    return velo_status{VELO_OK};
  });
  REQUIRE(host.await_released(size));
  return all;
}
inline std::vector<outcome> over_a_host(int size, std::int64_t timeout_ms, const rank_body& body) {
  return over_a_host_with("gather to_all messages abort", size, timeout_ms, body);
}

// hosts: a letter for each rank, as ranks_on_hosts takes them.
inline std::vector<outcome> over_hosts(const std::string& hosts, std::int64_t timeout_ms,
                                       const rank_body& body) {
  const scripted script;
  const int job = new_job(), size = static_cast<int>(hosts.size());
  std::vector<outcome> all(hosts.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.push_back(start_on_host(script, hosts, rank, [&, rank] {
      rank_over_mpi one;
      const velo_status made = one.join(job, size, rank, group_desc(timeout_ms));
      const rank_of_group me{one.context, one.stream, one.group, rank, size, false};
      all[at(rank)] = made == VELO_OK ? outcome_of(body, me) : outcome{record_of(made), 0};
      velo_group_destroy(one.group);
    }));
  for (std::thread& one : threads) one.join();
  return all;
}
inline std::vector<outcome> over_mpi(int size, std::int64_t timeout_ms, const rank_body& body) {
  return over_hosts(std::string(at(size), '0'), timeout_ms, body);
}
// The lower half of the ranks is on the first of two hosts.
inline std::vector<outcome> over_two_hosts(int size, std::int64_t timeout_ms,
                                           const rank_body& body) {
  const std::size_t first = at((size + 1) / 2);
  return over_hosts(std::string(first, '0') + std::string(at(size) - first, '1'), timeout_ms, body);
}

struct transport_case {
  const char* name;
  std::vector<outcome> (*run)(int size, std::int64_t timeout_ms, const rank_body& body);
};
inline constexpr transport_case every_transport[] = {{"threads", over_threads},
                                                     {"processes", over_processes},
                                                     {"mpi", over_mpi},
                                                     {"mpi on two hosts", over_two_hosts},
                                                     {"a host", over_a_host}};

}  // namespace velo::testing
