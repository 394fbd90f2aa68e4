// The initialization of MPI: by the host, with its communicators, its end and its threads, or by
// velo, which waits for other ranks only until its deadline.
#include <cstdlib>
#include <thread>

#include "comm/mpi/ranks.hpp"

using namespace velo::testing;

TEST_CASE("MPI of a host: its communicators, its end", "[host]") {
  int level = 0;
  REQUIRE(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level) == MPI_SUCCESS);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  {
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);  // in reverse order
    velo_group_desc desc = over_mpi();
    desc.transport = VELO_TRANSPORT_AUTO;
    desc.communicator = MPI_Comm_c2f(half);
    joined part(desc), whole;
    MPI_Comm_free(&half);  // the group goes on
    int inside = 0;
    for (int r = rank + 2; r < size; r += 2) ++inside;
    CHECK(part.me.rank == inside);
    CHECK(whole.me.rank == rank);
    for (int round = 0; round < 5; ++round) {
      CHECK(sum_of(part.me, 3000) == VELO_OK);
      CHECK(sum_of(whole.me, 3000) == VELO_OK);
    }
    MPI_Barrier(MPI_COMM_WORLD);  // the host's own messages, beside ours
  }
  for (int round = 0; round < 3; ++round) {  // freed after its groups
    MPI_Comm other = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    {
      velo_group_desc desc = over_mpi();
      desc.communicator = MPI_Comm_c2f(other);
      const joined group(desc);
      CHECK(sum_of(group.me, 3000) == VELO_OK);
    }
    MPI_Comm_free(&other);
  }
  joined late;
  CHECK(sum_of(late.me, 10) == VELO_OK);
  CHECK(MPI_Finalize() == MPI_SUCCESS);
  CHECK(sum_of(late.me, 10) == VELO_ERR_PEER);
  const velo_context context = new_context();
  velo_group group = nullptr;
  const velo_group_desc desc = over_mpi();
  CHECK(velo_group_create(context, &desc, &group) == VELO_ERR_UNSUPPORTED);
  velo_context_destroy(context);
}

TEST_CASE("MPI that is not for all threads is refused", "[single]") {
  REQUIRE(MPI_Init(nullptr, nullptr) == MPI_SUCCESS);
  const velo_context context = new_context();
  velo_group group = nullptr;
  const velo_group_desc desc = over_mpi();
  CHECK(velo_group_create(context, &desc, &group) == VELO_ERR_UNSUPPORTED);
  const call_record info = last_record();
  CHECK(info.cause == "MPI initialized without MPI_THREAD_MULTIPLE");
  velo_context_destroy(context);
  MPI_Finalize();
}

// Before MPI is initialized, only mpirun's environment gives the rank.
TEST_CASE("MPI_Init for which others do not come ends at the deadline, and goes on", "[late]") {
  const bool is_late = std::atoi(std::getenv("OMPI_COMM_WORLD_RANK")) == 1;
  if (is_late) {
    std::this_thread::sleep_for(std::chrono::seconds(4));
  } else {
    const velo_context context = new_context();
    velo_group group = nullptr;
    const velo_group_desc desc = over_mpi(500);
    for (int round = 0; round < 2; ++round) {
      CHECK(velo_group_create(context, &desc, &group) == VELO_ERR_PEER);
      CHECK(last_record().got == "not all within 500 ms");
    }
    const call_record info = last_record();
    CHECK(info.expected == "all processes of the job in MPI_Init");
    velo_context_destroy(context);
  }
  const joined all(over_mpi(60000));
  CHECK(sum_of(all.me, 1000) == VELO_OK);
}
