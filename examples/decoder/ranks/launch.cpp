// One rank, ranks as threads, or this process as one of a launcher's.
#include "examples/decoder/ranks/launch.hpp"

#include <cstdlib>
#include <exception>
#include <numeric>
#include <thread>

#include "examples/decoder/failure.hpp"
#include "examples/decoder/ranks/first_line.hpp"
#include "examples/decoder/ranks/interrupt.hpp"
#include "examples/decoder/ranks/processes.hpp"

namespace decoder {
namespace {

const char* text_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != 0 ? value : nullptr;
}

// The rank that a launcher gave this process; nullptr without one. velo_group_create reads the same
// variables; it refuses a rank without a size, and a size without a rank.
const char* launched_rank() {
  for (const auto& [rank, size] :
       {std::pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), std::pair("RANK", "WORLD_SIZE")})
    if (text_of(rank) || text_of(size)) return text_of(rank) ? text_of(rank) : "0";
  const char* task = text_of("SLURM_PROCID");
  return task && text_of("SLURM_STEP_NUM_TASKS") ? task : nullptr;
}

// Slurm runs a batch script once for all of its tasks; velo_group_create explains that.
bool is_batch_script_of_tasks() {
  const char* tasks = text_of("SLURM_NTASKS");
  return text_of("SLURM_PROCID") && tasks && std::atoi(tasks) > 1;
}

// Whether a failure explains the end of the run: a rank's that did more than miss another rank.
bool explains_end(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const velo::error& e) {
    return e.status() != VELO_ERR_PEER;
  } catch (...) {
    return true;
  }
}

// Runs the job; a failure ends the groups of this rank, so that no other waits for it.
int ending_others(member& me, const std::function<int(member&)>& job) {
  try {
    return job(me);
  } catch (...) {
    me.abort();
    throw;
  }
}

int on_threads(const settings& values, std::int64_t ranks, const std::function<int(member&)>& job) {
  const auto count = static_cast<std::size_t>(ranks);
  std::vector<std::unique_ptr<member>> members;
  std::vector<velo_context> contexts;
  for (std::size_t i = 0; i < count; ++i) {
    members.push_back(std::make_unique<member>(values, i == 0));
    contexts.push_back(members[i]->context().get());
  }
  const velo_group_desc desc = members[0]->group_desc();
  auto groups = velo::group::create_local<std::vector<velo::group>>(
      contexts.data(), static_cast<std::int32_t>(count), &desc);
  std::vector<int> codes(count);
  std::vector<std::exception_ptr> failures(count);
  std::vector<std::thread> threads;
  threads.reserve(count);
  std::exception_ptr not_started;
  try {
    for (std::size_t i = 0; i < count; ++i) {
      members[i]->join(std::move(groups[i]));
      threads.emplace_back([&, i] {
        try {
          codes[i] = ending_others(*members[i], job);
        } catch (...) {
          failures[i] = std::current_exception();
        }
      });
    }
  } catch (...) {
    not_started = std::current_exception();
    for (const auto& each : members) each->abort();  // for those that have started
  }
  for (std::thread& each : threads) each.join();
  if (not_started) std::rethrow_exception(not_started);
  for (const bool any : {false, true})
    for (const std::exception_ptr& each : failures)
      if (each && (any || explains_end(each))) std::rethrow_exception(each);
  return codes[0];
}

// Runs the job in this process, which a launcher started as a rank. Ranks of one host read each
// other's pools in place.
int as_launched(const settings& values, const char* rank, const std::function<int(member&)>& job,
                const std::function<void(std::int64_t)>& require_ranks, bool& works) {
  member me(values, std::atoi(rank) == 0, VELO_POOL_SHARED);
  {
    const ended_by_signals while_waiting;
    velo_group_desc desc = me.group_desc();
    desc.pool = me.memory().pool();
    me.join(velo::group::create(me.context().get(), desc));
  }
  if (require_ranks) require_ranks(me.ranks());
  works = true;
  try {
    return ending_others(me, job);
  } catch (const failure& why) {
    if (me.leads()) throw;
    fail("rank %d: %s", me.rank(), why.what());
  }
}

// The same. A failure is thrown if this rank is the one that prints it. Of another launcher's
// ranks, one that has missed another in its work leaves that to rank 0 or to the launcher.
int as_one_of_launched(const settings& values, const char* rank,
                       const std::function<int(member&)>& job,
                       const std::function<void(std::int64_t)>& require_ranks) {
  bool works = false;
  try {
    return as_launched(values, rank, job, require_ranks, works);
  } catch (...) {
    const bool is_cause = explains_end(std::current_exception());
    if (!takes_first_line(is_cause, is_cause || !works || std::atoi(rank) == 0)) return 1;
    throw;
  }
}

// The fewest ranks that a model so cut can have.
std::int64_t least_ranks(const parallel_settings& how) {
  return how.pp * std::lcm(how.tp * how.cp, how.ep);
}

}  // namespace

bool is_launched() {
  return launched_rank() != nullptr;
}

bool is_launched(const settings& run) {
  return is_launched() ||
         (run.run.ranks == 0 && least_ranks(run.parallel) == 1 && is_batch_script_of_tasks());
}

int on_all_ranks(const settings& values, const std::vector<std::string>& words,
                 const std::function<int(member&)>& job,
                 const std::function<void(std::int64_t)>& require_ranks) {
  if (is_launched(values)) {
    const char* rank = launched_rank();
    return as_one_of_launched(values, rank ? rank : "0", job, require_ranks);
  }
  const std::int64_t ranks =
      values.run.ranks == 0 ? least_ranks(values.parallel) : values.run.ranks;
  if (require_ranks) require_ranks(ranks);
  if (ranks == 1) {
    member me(values);
    return job(me);
  }
  return values.run.transport == "local" ? on_threads(values, ranks, job)
                                         : start_processes(ranks, words);
}

}  // namespace decoder
