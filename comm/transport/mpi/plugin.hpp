// The table of functions that libvelo.so gets from the plugin libvelo_mpi.so: messages between the
// ranks of a communicator. MPI's reductions are not used: they promise no order, and a custom
// function would not get the caller's pointer.
//
// The plugin is the only file that sees mpi.h. Its table serves the one release that is named in
// it. It duplicates each communicator that a host names, so that no message of velo is mistaken for
// one of the host. Invariant: no function waits for another rank.
#pragma once

#include <cstdint>

namespace velo::comm {

inline constexpr const char* mpi_plugin_file = "libvelo_mpi.so";
inline constexpr const char* mpi_plugin_symbol = "velo_mpi_plugin";
inline constexpr std::int64_t mpi_world = -1;  // MPI_COMM_WORLD; any other: an MPI_Fint

// A duplicate of a host's communicator, for velo's messages alone.
struct mpi_duplicate {
  int rank = 0, size = 1, most_tag = 32767;
  void* keep = nullptr;           // the progress engine of its groups
  void (*drop)(void*) = nullptr;  // destroys `keep`
};

// Makes the progress engine of a duplicate, and sets keep and drop; false: no memory.
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

  // Makes sure that MPI is initialized, by the host or here, for calls from any thread. It is
  // repeated until `*done`.
  bool (*start)(int* done, char* why);
  // Duplicates a communicator into `*duplicate`, which close gives back. It is repeated until
  // `*done`.
  bool (*open)(std::int64_t communicator, mpi_keeper keeper, mpi_duplicate** duplicate, int* done,
               char* why);
  void (*close)(mpi_duplicate* duplicate);

  bool (*send)(mpi_duplicate* duplicate, const void* bytes, int count, int to, int tag,
               mpi_request* begun, char* why);
  // from: -1 = any rank.
  bool (*receive)(mpi_duplicate* duplicate, void* bytes, int count, int from, int tag,
                  mpi_request* begun, char* why);
  bool (*test)(mpi_request* of, int* done, char* why);
  // False: the message is under way, and its memory still belongs to MPI.
  bool (*cancel)(mpi_request* of);

  // From now on the end of the process waits for other ranks for a moment only.
  void (*bound_finalize)();
};

using mpi_plugin_fn = const mpi_plugin* (*)();

}  // namespace velo::comm
