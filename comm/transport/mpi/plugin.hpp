// The table of functions that libvelo.so gets from the plugin libvelo_mpi.so: messages between the
// ranks of a communicator. MPI's reductions are not used: they promise no order, and a custom
// function would not get the caller's pointer.
//
// The plugin is the only file that includes mpi.h. Its table serves only the release that it names.
// It duplicates each communicator that a host passes, so that no message of velo is mistaken for
// one of the host's. Invariant: no function waits for another rank.
#pragma once

#include <cstdint>

namespace velo::comm {

inline constexpr const char* mpi_plugin_file = "libvelo_mpi.so";
inline constexpr const char* mpi_plugin_symbol = "velo_mpi_plugin";
inline constexpr std::int64_t mpi_world = -1;  // MPI_COMM_WORLD; any other: an MPI_Fint

// A duplicate of a host's communicator, used by velo's messages only.
struct mpi_duplicate {
  int rank = 0, size = 1, most_tag = 32767;
  void* keep = nullptr;           // the progress engine of its groups
  void (*drop)(void*) = nullptr;  // destroys `keep`
};

// Makes the progress engine of a duplicate, and sets `keep` and `drop`. False: out of memory.
struct mpi_keeper {
  bool (*make)(mpi_duplicate* duplicate, void* with) noexcept;
  void* with;
};

// A message under way; 0: none.
struct mpi_request {
  std::uint64_t word = 0;
};

struct mpi_plugin {
  const char* release;  // of velo
  const char* engine;   // "Open MPI 4.1.4"

  // A function that can fail returns false and writes the reason to `why`, 128 bytes.

  // Ensures that MPI is initialized, by the host or by this call, for calls from any thread. The
  // caller repeats the call until `*done` is set.
  bool (*start)(int* done, char* why);
  // Duplicates a communicator into `*duplicate`, which close() releases. The caller repeats the
  // call until `*done` is set.
  bool (*open)(std::int64_t communicator, mpi_keeper keeper, mpi_duplicate** duplicate, int* done,
               char* why);
  void (*close)(mpi_duplicate* duplicate);

  bool (*send)(mpi_duplicate* duplicate, const void* bytes, int count, int to, int tag,
               mpi_request* begun, char* why);
  // from: -1 = any rank.
  bool (*receive)(mpi_duplicate* duplicate, void* bytes, int count, int from, int tag,
                  mpi_request* begun, char* why);
  bool (*test)(mpi_request* of, int* done, char* why);
  // Returns false if the message is still under way, so that its memory still belongs to MPI.
  bool (*cancel)(mpi_request* of);

  // Makes the process wait for other ranks only briefly when it ends.
  void (*bound_finalize)();
};

using mpi_plugin_fn = const mpi_plugin* (*)();

}  // namespace velo::comm
