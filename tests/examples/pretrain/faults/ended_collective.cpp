// The collectives of a program, counted, and a rank that ends in one of them: a library that is
// preloaded and stands before velo's functions and the link of its executor.
//
// The environment says where. VELO_END_FOLDER receives, by the value of RANK, `calls.N` with a line
// "number function group" for each call, and `missed.N` with the record of the first call that
// failed. VELO_END_AT is the number of the call before which the process with the RANK of
// VELO_END_RANK sends itself the signal VELO_END_SIGNAL, and writes `ended.N`; without it the calls
// are listed. Times are of the monotonic clock, in ns.
#include <dlfcn.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "velo/velo.h"

namespace {

const char* text_of(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

long long now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

void write_file(const char* kind, const std::string& text) {
  const std::string path = std::string(text_of("VELO_END_FOLDER")) + '/' + kind + text_of("RANK");
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (file < 0) return;
  ::dprintf(file, "%s\n", text.c_str());
  ::close(file);
}

std::mutex lock;
std::map<const void*, std::string>& labels() {  // of groups, buckets and links
  static auto* const all = new std::map<const void*, std::string>;
  return *all;
}

void name(const void* handle, const std::string& label) {
  const std::lock_guard<std::mutex> held(lock);
  labels()[handle] = label;
}

std::string label_of(const void* handle) {
  const std::lock_guard<std::mutex> held(lock);
  return labels()[handle];
}

std::map<const void*, std::string>& batches() {  // labels of the batch groups of dispatchers
  static auto* const all = new std::map<const void*, std::string>;
  return *all;
}

void name_batch(const void* dispatcher, const std::string& label) {
  const std::lock_guard<std::mutex> held(lock);
  batches()[dispatcher] = label;
}

std::string batch_of(const void* dispatcher) {
  const std::lock_guard<std::mutex> held(lock);
  return batches()[dispatcher];
}

void count(const char* function, const void* handle) {
  static int calls = 0;
  if (*text_of("VELO_END_FOLDER") == 0) return;
  const std::string call = std::string(function) + ' ' + label_of(handle);
  const std::lock_guard<std::mutex> held(lock);
  ++calls;
  if (*text_of("VELO_END_AT") == 0) return write_file("calls.", std::to_string(calls) + ' ' + call);
  if (calls != std::atoi(text_of("VELO_END_AT"))) return;
  if (std::strcmp(text_of("RANK"), text_of("VELO_END_RANK")) != 0) return;
  write_file("ended.", std::to_string(now_ns()) + ' ' + call);
  ::kill(::getpid(), std::atoi(text_of("VELO_END_SIGNAL")));
}

velo_status noted(velo_status status) {
  static std::once_flag once;
  if (status == VELO_OK || *text_of("VELO_END_FOLDER") == 0) return status;
  std::call_once(once, [&] {
    velo_error_info found{};
    found.struct_size = sizeof found;
    velo_last_error(&found);
    write_file("missed.", std::to_string(now_ns()) + ' ' + std::to_string(status) + ' ' +
                              std::to_string(found.rank) + ' ' + found.function + ": " +
                              found.argument + ": " + found.expected + ": " + found.got);
  });
  return status;
}

// The function that the program would have called.
template <class Function>
Function next(Function, const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

// The link of a group, which the executor of stages calls.
struct counted_link {
  velo_link real;
  const void* group;
};

template <class... Arguments>
velo_status through(const char* function, velo_status (*velo_link::*real)(void*, Arguments...),
                    void* user, Arguments... arguments) {
  const auto& of = *static_cast<const counted_link*>(user);
  count(function, of.group);
  return noted((of.real.*real)(of.real.user, arguments...));
}

}  // namespace

#define CALL(function, parameters, arguments, group)    \
  extern "C" velo_status function parameters {          \
    count(#function, group);                            \
    return noted(next(&function, #function) arguments); \
  }
#define OPERATOR(function) \
  CALL(function, (velo_stream stream, const function##_args* args), (stream, args), args->group)

OPERATOR(velo_column_parallel_linear)
OPERATOR(velo_column_parallel_linear_backward)
OPERATOR(velo_row_parallel_linear)
OPERATOR(velo_row_parallel_linear_backward)
OPERATOR(velo_context_parallel_attention)
OPERATOR(velo_context_parallel_attention_backward)
OPERATOR(velo_vocab_parallel_cross_entropy)
OPERATOR(velo_vocab_parallel_embedding)
OPERATOR(velo_vocab_parallel_embedding_backward)
CALL(velo_group_barrier, (velo_stream stream, velo_group group), (stream, group), group)
CALL(velo_group_all_reduce,
     (velo_stream stream, velo_group group, const velo_reduction* how, const velo_tensor* in,
      const velo_tensor* out),
     (stream, group, how, in, out), group)
CALL(velo_group_reduce,
     (velo_stream stream, velo_group group, std::int32_t root, const velo_reduction* how,
      const velo_tensor* in, const velo_tensor* out),
     (stream, group, root, how, in, out), group)
CALL(velo_group_all_gather,
     (velo_stream stream, velo_group group, const velo_tensor* in, const velo_tensor* out),
     (stream, group, in, out), group)
CALL(velo_group_all_gather_v,
     (velo_stream stream, velo_group group, const velo_tensor* in, const std::int64_t* counts,
      const std::int64_t* offsets, const velo_tensor* out),
     (stream, group, in, counts, offsets, out), group)
CALL(velo_group_gather_v,
     (velo_stream stream, velo_group group, std::int32_t root, const velo_tensor* in,
      const std::int64_t* counts, const std::int64_t* offsets, const velo_tensor* out),
     (stream, group, root, in, counts, offsets, out), group)
CALL(velo_group_reduce_scatter_v,
     (velo_stream stream, velo_group group, const velo_reduction* how, const velo_tensor* in,
      const std::int64_t* counts, const velo_tensor* out),
     (stream, group, how, in, counts, out), group)
CALL(velo_buckets_ready, (velo_buckets buckets, velo_stream stream, std::int64_t slice),
     (buckets, stream, slice), buckets)
CALL(velo_buckets_finish, (velo_buckets buckets, velo_stream stream), (buckets, stream), buckets)

extern "C" velo_status velo_buckets_create(velo_stream stream, velo_group group,
                                           const velo_tensor* gradients, const std::int64_t* counts,
                                           std::int64_t count, const velo_buckets_desc* desc,
                                           velo_buckets* buckets) {
  const velo_status done = next(&velo_buckets_create, "velo_buckets_create")(
      stream, group, gradients, counts, count, desc, buckets);
  if (done == VELO_OK) name(*buckets, label_of(group));
  return noted(done);
}

#define MOVEMENT(function, parameters, arguments)                                          \
  CALL(velo_dispatcher_##function,                                                         \
       (velo_dispatcher dispatcher, velo_stream stream, velo_routing routing, parameters), \
       (dispatcher, stream, routing, arguments), dispatcher)
#define LIST(...) __VA_ARGS__

MOVEMENT(dispatch, LIST(const velo_tensor* tokens, const velo_tensor* rows), LIST(tokens, rows))
MOVEMENT(combine,
         LIST(const velo_tensor* rows, const velo_tensor* weights, const velo_tensor* tokens),
         LIST(rows, weights, tokens))
MOVEMENT(combine_backward,
         LIST(const velo_tensor* dtokens, const velo_tensor* rows, const velo_tensor* weights,
              const velo_tensor* drows, const velo_tensor* dweights),
         LIST(dtokens, rows, weights, drows, dweights))
MOVEMENT(dispatch_backward, LIST(const velo_tensor* drows, const velo_tensor* dtokens),
         LIST(drows, dtokens))
CALL(velo_routing_set,
     (velo_routing routing, velo_stream stream, const velo_tensor* choices,
      const velo_tensor* scores, const velo_tensor* places),
     (routing, stream, choices, scores, places), routing)

// Choices are limited in the group of a micro-batch before their counts are exchanged.
extern "C" velo_status velo_dispatcher_create(velo_group group, const velo_dispatcher_desc* desc,
                                              velo_dispatcher* dispatcher) {
  const velo_status done =
      next(&velo_dispatcher_create, "velo_dispatcher_create")(group, desc, dispatcher);
  if (done != VELO_OK) return noted(done);
  name(*dispatcher, label_of(group));
  name_batch(*dispatcher, label_of(desc->batch_group != nullptr ? desc->batch_group : group));
  return done;
}

extern "C" velo_status velo_routing_create(velo_dispatcher dispatcher, velo_routing* routing) {
  const velo_status done = next(&velo_routing_create, "velo_routing_create")(dispatcher, routing);
  if (done == VELO_OK) name(*routing, batch_of(dispatcher));
  return noted(done);
}

extern "C" velo_status velo_group_create(velo_context context, const velo_group_desc* desc,
                                         velo_group* group) {
  const velo_status done = next(&velo_group_create, "velo_group_create")(context, desc, group);
  if (done == VELO_OK) name(*group, desc->label != nullptr ? desc->label : "group");
  return noted(done);
}

extern "C" velo_status velo_group_create_part(velo_group parent, const std::int32_t* ranks,
                                              std::int32_t count, const velo_group_desc* desc,
                                              velo_group* group) {
  const velo_status done =
      next(&velo_group_create_part, "velo_group_create_part")(parent, ranks, count, desc, group);
  if (done == VELO_OK) name(*group, desc->label != nullptr ? desc->label : "group");
  return noted(done);
}

extern "C" velo_status velo_group_get_link(velo_group group, velo_link* link) {
  const velo_status done = next(&velo_group_get_link, "velo_group_get_link")(group, link);
  if (done != VELO_OK) return noted(done);
  const auto* of = new counted_link{*link, group};  // as long as the process
  link->user = const_cast<counted_link*>(of);
  link->send = [](void* user, std::int32_t to, const void* bytes, std::uint64_t size) {
    return through("send", &velo_link::send, user, to, bytes, size);
  };
  link->receive = [](void* user, std::int32_t from, void* bytes, std::uint64_t size) {
    return through("receive", &velo_link::receive, user, from, bytes, size);
  };
  link->abort = [](void* user, const char* why) {
    const velo_link& real = static_cast<const counted_link*>(user)->real;
    real.abort(real.user, why);
  };
  link->start_send = [](void* user, std::int32_t to, const void* bytes, std::uint64_t size) {
    return through("start_send", &velo_link::start_send, user, to, bytes, size);
  };
  link->finish = [](void* user) { return through("finish", &velo_link::finish, user); };
  link->borrow = [](void* user, std::int32_t from, std::uint64_t size, void** bytes) {
    return through("borrow", &velo_link::borrow, user, from, size, bytes);
  };
  link->give_back = [](void* user, void* bytes) {
    const velo_link& real = static_cast<const counted_link*>(user)->real;
    real.give_back(real.user, bytes);
  };
  return done;
}
