// libvelo_mpi.so: the table of plugin.hpp over MPI 3.
//
// A duplicate is an attribute of the host's communicator. When the host frees that communicator,
// the duplicate ends with the last group that uses it, or soon after. If velo has initialized MPI,
// it finalizes MPI when the process exits. After MPI_Finalize every call fails.
#include "comm/transport/mpi/plugin.hpp"

#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <vector>

namespace velo::comm {
namespace {

constexpr std::size_t why_bytes = 128;

struct duplicate final : mpi_duplicate {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Request made = MPI_REQUEST_NULL;
  bool ready = false;
  std::atomic<bool> orphan{false};  // the host's communicator is gone
  int users = 0;
};

enum class initializing { no, under_way, over };

// The plugin's state; there is one in a process, as in MPI.
struct world {
  std::mutex lock;  // guards the duplicates and their users
  std::vector<duplicate*> duplicates;
  std::atomic<bool> over{false};
  std::atomic<bool> finalize_bounded{false};
  std::atomic<initializing> begun{initializing::no};
  int code = MPI_SUCCESS, level = MPI_THREAD_SINGLE;  // of MPI_Init_thread, once it has returned
  int duplicate_key = MPI_KEYVAL_INVALID, end_key = MPI_KEYVAL_INVALID;
  pid_t initialized_by = 0;
};
world& all() {
  // The state is never destroyed, since the process may end in the middle of a call.
  static world* const one = new world;
  return *one;
}

bool good(int code, char* why) {
  if (code == MPI_SUCCESS) return true;
  char text[MPI_MAX_ERROR_STRING] = "";
  int size = 0;
  if (!all().over) MPI_Error_string(code, text, &size);
  std::snprintf(why, why_bytes, "%s", text);
  return false;
}

bool refuse(char* why, const char* text) {
  std::snprintf(why, why_bytes, "%s", text);
  return false;
}

bool is_running(char* why) {
  return !all().over || refuse(why, "MPI has been finalized");
}

// Frees unused duplicates, but not their communicators, since another rank's last notice may still
// be under way and would reach the next communicator with the same number.
void free_unused() {
  std::vector<duplicate*>& duplicates = all().duplicates;
  for (std::size_t i = 0; i < duplicates.size();) {
    duplicate* const one = duplicates[i];
    if (one->users > 0 || !one->orphan || !one->ready || all().over) {
      ++i;
      continue;
    }
    if (one->drop != nullptr) one->drop(one->keep);
    duplicates[i] = duplicates.back();
    duplicates.pop_back();
    delete one;
  }
}

// MPI calls this when the host frees a communicator, and holds its own locks meanwhile.
int forget_duplicate(MPI_Comm, int, void* value, void*) {
  static_cast<duplicate*>(value)->orphan = true;
  return MPI_SUCCESS;
}

// MPI calls this for an attribute of MPI_COMM_SELF, which MPI_Finalize frees before anything else.
int end_all(MPI_Comm, int, void*, void*) {
  all().over = true;
  return MPI_SUCCESS;
}

// A rank that is gone can block MPI_Finalize for ever, so after three seconds the process exits
// without it.
void* end_anyway(void* status) {
  sleep(3);
  _exit(*static_cast<int*>(status));
}

void finalize(int status, void*) {
  if (all().initialized_by != getpid() || all().over) return;
  static int kept;
  kept = status;
  pthread_t other;
  if (all().finalize_bounded && pthread_create(&other, nullptr, end_anyway, &kept) != 0) return;
  MPI_Finalize();
}

// MPI_Init waits for every process of the job and cannot be canceled, so it runs on a thread of its
// own.
void* initialize(void*) {
  world& of = all();
  of.code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &of.level);
  of.begun = initializing::over;
  return nullptr;
}

// Whether MPI is initialized. While it is not, `*done` stays 0.
bool await_initialized(int* done, char* why) {
  world& of = all();
  int begun = 0;
  if (of.begun == initializing::no) {
    MPI_Initialized(&begun);
    if (begun != 0) {
      *done = 1;
      return good(MPI_Query_thread(&of.level), why);
    }
    pthread_t other;
    of.begun = initializing::under_way;
    if (pthread_create(&other, nullptr, initialize, nullptr) != 0) {
      of.begun = initializing::no;
      return refuse(why, "no thread for MPI_Init");
    }
    pthread_detach(other);
  }
  if (of.begun != initializing::over) return true;
  *done = 1;
  if (!good(of.code, why)) return false;
  if (of.initialized_by == 0) on_exit(finalize, nullptr);
  of.initialized_by = getpid();
  return true;
}

bool start(int* done, char* why) {
  const std::lock_guard<std::mutex> lock(all().lock);
  *done = 0;
  if (!is_running(why)) return false;
  if (all().end_key != MPI_KEYVAL_INVALID) {
    *done = 1;
    return true;
  }
  int ended = 0;
  MPI_Finalized(&ended);
  if (ended != 0) return refuse(why, "MPI has been finalized");
  if (!await_initialized(done, why)) return false;
  if (*done == 0) return true;
  if (all().level < MPI_THREAD_MULTIPLE)
    return refuse(why, "MPI initialized without MPI_THREAD_MULTIPLE");
  return good(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget_duplicate, &all().duplicate_key,
                                     nullptr),
              why) &&
         good(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_all, &all().end_key, nullptr),
              why) &&
         good(MPI_Comm_set_attr(MPI_COMM_SELF, all().end_key, nullptr), why);
}

bool complete(duplicate* one, char* why) {
  int* most = nullptr;
  int there = 0;
  if (!good(MPI_Comm_rank(one->comm, &one->rank), why) ||
      !good(MPI_Comm_size(one->comm, &one->size), why) ||
      !good(MPI_Comm_set_errhandler(one->comm, MPI_ERRORS_RETURN), why) ||
      !good(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &there), why))
    return false;
  if (there != 0) one->most_tag = *most;
  one->ready = true;
  return true;
}

bool open(std::int64_t communicator, mpi_keeper keeper, mpi_duplicate** found, int* done,
          char* why) {
  const std::lock_guard<std::mutex> lock(all().lock);
  *done = 0;
  if (!is_running(why)) return false;
  const MPI_Comm given = communicator == mpi_world
                             ? MPI_COMM_WORLD
                             : MPI_Comm_f2c(static_cast<MPI_Fint>(communicator));
  int between = 0;
  if (communicator != static_cast<MPI_Fint>(communicator) || given == MPI_COMM_NULL ||
      given == MPI_Comm{})
    return refuse(why, "no communicator of MPI");
  if (!good(MPI_Comm_test_inter(given, &between), why)) return false;
  if (between != 0) return refuse(why, "an intercommunicator");
  duplicate* one = nullptr;
  int there = 0;
  if (!good(MPI_Comm_get_attr(given, all().duplicate_key, &one, &there), why)) return false;
  if (there == 0) {
    free_unused();
    one = new duplicate;
    all().duplicates.push_back(one);
    if (!good(MPI_Comm_idup(given, &one->comm, &one->made), why) ||
        !good(MPI_Comm_set_attr(given, all().duplicate_key, one), why))
      return false;
  }
  if (!one->ready) {
    if (!good(MPI_Test(&one->made, done, MPI_STATUS_IGNORE), why)) return false;
    if (*done == 0) return true;
    if (!complete(one, why)) return false;
  }
  if (one->keep == nullptr && !keeper.make(one, keeper.with)) return refuse(why, "no memory");
  ++one->users;
  *found = one;
  *done = 1;
  return true;
}

void close(mpi_duplicate* of) {
  const std::lock_guard<std::mutex> lock(all().lock);
  --static_cast<duplicate*>(of)->users;
  free_unused();
}

static_assert(sizeof(MPI_Request) <= sizeof(mpi_request));

MPI_Request request_of(const mpi_request& from) {
  MPI_Request request;
  std::memcpy(&request, &from.word, sizeof(MPI_Request));
  return request;
}
void keep(mpi_request* to, MPI_Request request) {
  to->word = 0;
  if (request != MPI_REQUEST_NULL) std::memcpy(&to->word, &request, sizeof(MPI_Request));
}

bool send(mpi_duplicate* by, const void* bytes, int count, int to, int tag, mpi_request* begun,
          char* why) {
  if (!is_running(why)) return false;
  MPI_Request request = MPI_REQUEST_NULL;
  const bool went = good(
      MPI_Isend(bytes, count, MPI_BYTE, to, tag, static_cast<duplicate*>(by)->comm, &request), why);
  keep(begun, request);
  return went;
}

bool receive(mpi_duplicate* by, void* bytes, int count, int from, int tag, mpi_request* begun,
             char* why) {
  if (!is_running(why)) return false;
  MPI_Request request = MPI_REQUEST_NULL;
  const bool went = good(MPI_Irecv(bytes, count, MPI_BYTE, from < 0 ? MPI_ANY_SOURCE : from, tag,
                                   static_cast<duplicate*>(by)->comm, &request),
                         why);
  keep(begun, request);
  return went;
}

bool test(mpi_request* of, int* done, char* why) {
  *done = 1;
  if (of->word == 0) return true;
  if (!is_running(why)) return false;
  MPI_Request request = request_of(*of);
  const bool went = good(MPI_Test(&request, done, MPI_STATUS_IGNORE), why);
  keep(of, request);
  return went;
}

bool cancel(mpi_request* of) {
  char why[why_bytes];
  int done = 0;
  if (of->word == 0) return true;
  if (!is_running(why)) return false;
  MPI_Request request = request_of(*of);
  if (MPI_Cancel(&request) != MPI_SUCCESS) return false;
  return test(of, &done, why) && done != 0;
}

void bound_finalize() {
  all().finalize_bounded = true;
}

const char* engine() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int size = 0;
  MPI_Get_library_version(text, &size);
  text[std::strcspn(text, ",\n")] = 0;
  return text;
}

}  // namespace
}  // namespace velo::comm

extern "C" __attribute__((visibility("default"))) const velo::comm::mpi_plugin* velo_mpi_plugin() {
  using namespace velo::comm;
  static const mpi_plugin table{VELO_RELEASE, engine(), start, open,   close,
                                send,         receive,  test,  cancel, bound_finalize};
  return &table;
}
