/* This part: groups and their collectives, of one rank and of two, the second on a queue, and by
 * way of a host; buckets. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>

#include "client.h"

static void one_rank(velo_stream stream, velo_context context) {
  velo_group group = NULL, part = NULL, rest = NULL;
  const int32_t twice[2] = {0, 0};
  velo_group_info info = VELO_GROUP_INFO_INIT;
  velo_reduction how = VELO_REDUCTION_INIT;
  float in[3] = {1, -2, 0.5f}, out[3] = {0};
  const velo_tensor from = TENSOR(in, VELO_DTYPE_FLOAT, 32, 1, 3);
  const velo_tensor to = TENSOR(out, VELO_DTYPE_FLOAT, 32, 1, 3);
  char text[2000];
  uint64_t needed = 0;
  WORKS(velo_transport_query(context, VELO_TRANSPORT_LOCAL));
  EXPECT(velo_transport_query(context, 99) == VELO_ERR_ARGUMENT);
  WORKS(velo_group_create(context, NULL, &group));
  how.op = VELO_REDUCE_AVG;
  how.scale = 4;
  WORKS(velo_group_all_reduce(stream, group, &how, &from, &to));
  EXPECT(out[0] == 4 && out[1] == -8 && out[2] == 2);
  how.op = 99;
  EXPECT(velo_group_all_reduce(stream, group, &how, &from, &to) == VELO_ERR_ARGUMENT);
  WORKS(velo_group_barrier(stream, group));
  WORKS(velo_group_get_info(group, &info));
  EXPECT(info.rank == 0 && info.size == 1 && info.transport == VELO_TRANSPORT_SELF);
  EXPECT(info.called == 2 && info.finished == 2 && info.failed == 0);
  WORKS(velo_group_describe(group, text, sizeof text, &needed));
  EXPECT(text[0] == '{' && needed == strlen(text) + 1);
  WORKS(velo_group_history(group, text, sizeof text, &needed));
  EXPECT(strstr(text, "all_reduce of 3 float32, avg scaled by 4") != NULL &&
         needed == strlen(text) + 1);
  EXPECT(velo_group_create_part(group, twice, 2, NULL, &part) == VELO_ERR_ARGUMENT);
  WORKS(velo_group_create_part(group, twice, 1, NULL, &part));
  EXPECT(velo_group_shrink(part, NULL, &rest) == VELO_ERR_STATE);
  velo_group_destroy(group);
  EXPECT(velo_group_barrier(stream, group) == VELO_ERR_HANDLE);
  WORKS(velo_group_abort(part));
  EXPECT(velo_group_barrier(stream, part) == VELO_ERR_PEER);
  WORKS(velo_group_shrink(part, NULL, &rest));
  WORKS(velo_group_barrier(stream, rest));
  velo_group_destroy(part);
  velo_group_destroy(rest);
}

/* a * 10 + b: the order shows. */
static void append_digit(void* user, const void* next, void* total, int64_t count,
                         const velo_dtype* dtype) {
  int64_t i;
  *(int*)user += dtype->bits;
  for (i = 0; i < count; ++i)
    ((int32_t*)total)[i] = ((int32_t*)total)[i] * 10 + ((const int32_t*)next)[i];
}

/* Of one rank alone every collective leaves things where they are, or copies them. */
static void alone(velo_stream stream, velo_context context) {
  velo_group group = NULL, across = NULL;
  int32_t in[4] = {1, 2, 3, 4}, out[4] = {0}, itself[4] = {0};
  const int64_t four[1] = {4}, two[1] = {2}, second[1] = {1};
  const velo_tensor from = TENSOR(in, VELO_DTYPE_INT, 32, 1, 4);
  const velo_tensor to = TENSOR(out, VELO_DTYPE_INT, 32, 1, 4);
  const velo_tensor pair = TENSOR(out, VELO_DTYPE_INT, 32, 1, 2);
  const velo_tensor targets = TENSOR(itself, VELO_DTYPE_INT, 32, 1, 4);
  float made[4] = {2, 3, 4, 5}, weight[4] = {1, 2, 2, 2}, sum[2] = {0};
  const velo_tensor rows = TENSOR(made, VELO_DTYPE_FLOAT, 32, 1, 4);
  const velo_tensor sums = TENSOR(sum, VELO_DTYPE_FLOAT, 32, 1, 2);
  const velo_tensor twice = TENSOR(itself, VELO_DTYPE_INT, 32, 2, 2, 2);
  const velo_tensor weights = TENSOR(weight, VELO_DTYPE_FLOAT, 32, 2, 2, 2);
  WORKS(velo_group_create(context, NULL, &group));
  WORKS(velo_group_reduce(stream, group, 0, NULL, &from, &to));
  EXPECT(out[0] == 1 && out[3] == 4);
  out[0] = 9;
  WORKS(velo_group_broadcast(stream, group, 0, &to));
  EXPECT(out[0] == 9 && out[3] == 4);
  WORKS(velo_group_all_gather(stream, group, &from, &to));
  EXPECT(out[0] == 1);
  WORKS(velo_group_all_gather_v(stream, group, &pair, two, NULL, &pair));
  WORKS(velo_group_all_gather_v(stream, group, &from, four, NULL, &to));
  EXPECT(velo_group_all_gather_v(stream, group, &from, four, second, &to) == VELO_ERR_ARGUMENT);
  WORKS(velo_group_reduce_scatter(stream, group, NULL, &from, &to));
  WORKS(velo_group_reduce_scatter_v(stream, group, NULL, &from, four, &to));
  WORKS(velo_group_all_to_all(stream, group, &from, &to));
  WORKS(velo_group_all_to_all_v(stream, group, &from, two, second, two, NULL, &to));
  EXPECT(out[0] == 2 && out[1] == 3 && out[2] == 3);
  {
    velo_collective_desc desc = VELO_COLLECTIVE_DESC_INIT;
    velo_collective copy = NULL;
    char text[200];
    desc.kind = VELO_COLLECTIVE_ALL_GATHER;
    desc.in = &from;
    desc.out = &to;
    WORKS(velo_collective_create(group, &desc, &copy));
    in[0] = 7;
    WORKS(velo_collective_start(stream, copy));
    EXPECT(out[0] == 7);
    in[0] = 1;
    WORKS(velo_collective_start(stream, copy));
    EXPECT(out[0] == 1 && out[3] == 4);
    WORKS(velo_group_measure(stream, group));
    WORKS(velo_collective_explain(copy, text, sizeof text, NULL));
    EXPECT(strstr(text, "\"name\":\"copy\",\"chosen\":true") != NULL);
    EXPECT(strstr(text, "\"steps\":0") != NULL && strstr(text, "\"predicted_ns\":null") == NULL);
    WORKS(velo_collective_describe(copy, text, sizeof text, NULL));
    EXPECT(strstr(text, "all_gather of 4 int32") != NULL && strstr(text, "\"started\":2") != NULL);
    velo_collective_destroy(copy);
    EXPECT(velo_collective_start(stream, copy) == VELO_ERR_HANDLE);
  }
  WORKS(velo_group_create(context, NULL, &across));
  WORKS(velo_group_dispatch(stream, group, across, &from, &targets, four, &to));
  EXPECT(out[0] == 1 && out[3] == 4);
  WORKS(velo_group_combine(stream, group, across, &rows, four, &twice, &weights, &sums));
  EXPECT(sum[0] == 8 && sum[1] == 18);
  velo_group_destroy(across);
  WORKS(velo_group_gather(stream, group, 0, &from, &to));
  EXPECT(out[0] == 1);
  WORKS(velo_group_gather_v(stream, group, 0, &from, four, NULL, &to));
  WORKS(velo_group_scatter(stream, group, 0, &from, &to));
  WORKS(velo_group_scatter_v(stream, group, 0, &from, two, second, &pair));
  EXPECT(out[0] == 2 && out[1] == 3 && out[2] == 3);
  EXPECT(velo_group_broadcast(stream, group, 1, &to) == VELO_ERR_ARGUMENT);
  velo_group_destroy(group);
}

/* Leaves each rank another result. */
static void take_rank(void* user, const void* next, void* total, int64_t count,
                      const velo_dtype* dtype) {
  (void)next, (void)dtype;
  for (int64_t i = 0; i < count; ++i) ((int32_t*)total)[i] = *(const int*)user;
}

/* Results that differ are found by a group that compares them; a wait has a length. */
static void compared(velo_stream stream, velo_context context) {
  velo_context contexts[2] = {context, NULL};
  int ranks[2] = {0, 1};
  int32_t zero[2] = {5, 5}, one[2] = {5, 5};
  const velo_tensor x[2] = {TENSOR(zero, VELO_DTYPE_INT, 32, 1, 2),
                            TENSOR(one, VELO_DTYPE_INT, 32, 1, 2)};
  velo_stream queue = NULL;
  velo_reduction own = VELO_REDUCTION_INIT;
  WORKS(velo_context_create(NULL, &contexts[1]));
  WORKS(velo_stream_create(contexts[1], &queue));
  own.op = VELO_REDUCE_CUSTOM;
  own.fn = take_rank;
  for (int verify = 0; verify < 2; ++verify) {
    velo_group groups[2] = {NULL, NULL};
    velo_group_desc desc = VELO_GROUP_DESC_INIT;
    desc.flags = verify ? VELO_GROUP_VERIFY : 0;
    WORKS(velo_group_create_local(contexts, 2, &desc, groups));
    own.user = &ranks[1];
    WORKS(velo_group_all_reduce(queue, groups[1], &own, &x[1], &x[1]));
    own.user = &ranks[0];
    EXPECT(velo_group_all_reduce(stream, groups[0], &own, &x[0], &x[0]) ==
           (verify ? VELO_ERR_PEER : VELO_OK));
    EXPECT(velo_stream_synchronize(queue) == (verify ? VELO_ERR_PEER : VELO_OK));
    velo_group_destroy(groups[0]);
    velo_group_destroy(groups[1]);
  }
  {
    velo_group groups[2] = {NULL, NULL};
    velo_group_desc desc = VELO_GROUP_DESC_INIT;
    double before = 0;
    desc.timeout_ns = 50000000;
    WORKS(velo_group_create_local(contexts, 2, &desc, groups));
    before = client_seconds();
    EXPECT(velo_group_barrier(stream, groups[0]) == VELO_ERR_PEER);
    EXPECT(client_seconds() - before > 0.04 && client_seconds() - before < 5);
    velo_group_destroy(groups[0]);
    velo_group_destroy(groups[1]);
  }
  WORKS(velo_stream_clear(queue));
  velo_stream_destroy(queue);
  velo_context_destroy(contexts[1]);
}

static void two_ranks(velo_stream stream, velo_context context) {
  velo_context contexts[2] = {context, NULL};
  velo_stream queue = NULL;
  velo_group groups[2] = {NULL, NULL};
  velo_group_desc desc = VELO_GROUP_DESC_INIT;
  int32_t low[2] = {5, -7}, high[2] = {-1, 3}, sums[2] = {0, 0};
  const velo_tensor first = TENSOR(low, VELO_DTYPE_INT, 32, 1, 2);
  const velo_tensor second = TENSOR(high, VELO_DTYPE_INT, 32, 1, 2);
  const velo_tensor sum = TENSOR(sums, VELO_DTYPE_INT, 32, 1, 2);
  int32_t kept[2] = {4, -4};
  int bits[2] = {0, 0};
  velo_reduction own = VELO_REDUCTION_INIT;
  const velo_tensor copy = TENSOR(kept, VELO_DTYPE_INT, 32, 1, 2);
  const velo_group_message forth[2] = {{&first, 1, VELO_MESSAGE_SEND},
                                       {&sum, 1, VELO_MESSAGE_RECEIVE}};
  const velo_group_message back[2] = {{&copy, 0, VELO_MESSAGE_SEND},
                                      {&second, 0, VELO_MESSAGE_RECEIVE}};
  WORKS(velo_context_create(NULL, &contexts[1]));
  WORKS(velo_stream_create(contexts[1], &queue));
  desc.label = "pair";
  WORKS(velo_group_create_local(contexts, 2, &desc, groups));
  WORKS(velo_group_all_reduce(queue, groups[1], NULL, &second, &second));
  WORKS(velo_group_all_reduce(stream, groups[0], NULL, &first, &sum));
  WORKS(velo_stream_synchronize(queue));
  EXPECT(sums[0] == 4 && sums[1] == -4 && high[0] == 4 && high[1] == -4 && low[0] == 5);
  own.op = VELO_REDUCE_CUSTOM;
  EXPECT(velo_group_all_reduce(stream, groups[0], &own, &first, &sum) == VELO_ERR_NULL);
  own.fn = append_digit;
  own.user = &bits[1];
  WORKS(velo_group_all_reduce(queue, groups[1], &own, &second, &second));
  own.user = &bits[0];
  WORKS(velo_group_all_reduce(stream, groups[0], &own, &first, &sum));
  WORKS(velo_stream_synchronize(queue));
  EXPECT(sums[0] == 54 && sums[1] == -74 && high[1] == -74 && bits[0] == 32 && bits[1] == 32);
  WORKS(velo_group_send(queue, groups[1], 0, &second));
  WORKS(velo_group_receive(stream, groups[0], 1, &sum));
  EXPECT(sums[0] == 54 && sums[1] == -74);
  WORKS(velo_group_exchange(queue, groups[1], back, 2));
  WORKS(velo_group_exchange(stream, groups[0], forth, 2));
  WORKS(velo_stream_synchronize(queue));
  EXPECT(sums[0] == 4 && high[0] == 5 && high[1] == -7);
  WORKS(velo_group_send(stream, groups[0], 0, &second)); /* to itself */
  WORKS(velo_group_receive(stream, groups[0], 0, &sum));
  EXPECT(sums[0] == 5 && sums[1] == -7);
  EXPECT(velo_group_send(stream, groups[0], 2, &first) == VELO_ERR_ARGUMENT);
  WORKS(velo_group_abort(groups[1]));
  EXPECT(velo_group_barrier(stream, groups[0]) == VELO_ERR_PEER);
  velo_group_destroy(groups[0]);
  velo_context_destroy(contexts[1]);
}

static void buckets_of_one(velo_stream stream, velo_context context) {
  velo_group group = NULL;
  velo_buckets buckets = NULL;
  velo_buckets_desc desc = VELO_BUCKETS_DESC_INIT;
  velo_buckets_info info = VELO_BUCKETS_INFO_INIT;
  velo_bucket one = VELO_BUCKET_INIT;
  float values[3] = {1, 2, 3};
  const int64_t counts[2] = {1, 2};
  const int64_t shape[1] = {3};
  const velo_tensor gradients = F32(values, 1, shape);
  WORKS(velo_group_create(context, NULL, &group));
  desc.bytes = 4;
  desc.scale = 2;
  WORKS(velo_buckets_create(stream, group, &gradients, counts, 2, &desc, &buckets));
  WORKS(velo_buckets_ready(buckets, stream, 1));
  EXPECT(values[0] == 1 && values[1] == 4 && values[2] == 6);
  EXPECT(velo_buckets_ready(buckets, stream, 1) == VELO_ERR_STATE);
  WORKS(velo_buckets_finish(buckets, stream));
  EXPECT(values[0] == 2 && values[1] == 4);
  WORKS(velo_buckets_get_info(buckets, &info));
  EXPECT(info.slices == 2 && info.buckets == 2 && info.steps == 1);
  WORKS(velo_buckets_get_bucket(buckets, 1, &one));
  EXPECT(one.first == 1 && one.offset == 1 && one.count == 2 && one.own_count == 2);
  WORKS(velo_buckets_gather(buckets, stream, &gradients));
  WORKS(velo_buckets_wait(buckets, stream, 0));
  EXPECT(values[0] == 2);
  velo_buckets_destroy(buckets);
  velo_group_destroy(group);
}

/* Expert 1 has two choices, of which it keeps one. */
static void experts_with_capacity(velo_stream stream, velo_group group,
                                  const velo_tensor* choices) {
  velo_dispatcher layer = NULL;
  velo_routing routing = NULL;
  velo_dispatcher_desc desc = VELO_DISPATCHER_DESC_INIT;
  float kept[4] = {1, 2, 3, 4};
  int64_t order[2] = {1, 0}, counts[2] = {0, 0}, all = 0;
  const int64_t shape[2] = {2, 2}, two = 2;
  const velo_tensor scores = F32(kept, 2, shape);
  velo_tensor places = F32(order, 1, &two);
  places.dtype.code = VELO_DTYPE_INT;
  places.dtype.bits = 64;
  desc.experts = 2;
  desc.top_k = 2;
  desc.capacity_rule = VELO_CAPACITY_FACTOR;
  desc.capacity_factor = 0.5;
  desc.capacity = 1;
  desc.pad = 1;
  desc.batch_group = group;
  WORKS(velo_dispatcher_create(group, &desc, &layer));
  WORKS(velo_routing_create(layer, &routing));
  WORKS(velo_routing_set(routing, stream, choices, &scores, &places));
  WORKS(velo_routing_get_rows(routing, counts, 2, &all));
  EXPECT(all == 2 && counts[0] == 1 && counts[1] == 1);
  velo_routing_destroy(routing);
  velo_dispatcher_destroy(layer);
}

static void experts_of_one(velo_stream stream, velo_context context) {
  velo_group group = NULL;
  velo_dispatcher layer = NULL;
  velo_routing routing = NULL;
  velo_dispatcher_desc desc = VELO_DISPATCHER_DESC_INIT;
  velo_dispatcher_info info = VELO_DISPATCHER_INFO_INIT;
  int32_t chosen[4] = {1, 0, -1, 1};
  float x[4] = {1, 2, 3, 4}, rows[6] = {0}, w[4] = {2, 3, 9, 4}, y[4] = {0};
  float drows[6] = {0}, dw[4] = {0}, dx[4] = {0};
  const int64_t shape[2] = {2, 2}, row_shape[2] = {3, 2};
  const velo_tensor tokens = F32(x, 2, shape), experts = F32(rows, 2, row_shape);
  const velo_tensor weights = F32(w, 2, shape), out = F32(y, 2, shape);
  const velo_tensor gradients = F32(drows, 2, row_shape), dweights = F32(dw, 2, shape);
  const velo_tensor dtokens = F32(dx, 2, shape);
  velo_tensor choices = F32(chosen, 2, shape);
  int64_t counts[2] = {0, 0}, all = 0;
  choices.dtype.code = VELO_DTYPE_INT;
  WORKS(velo_group_create(context, NULL, &group));
  desc.experts = 2;
  desc.top_k = 2;
  WORKS(velo_dispatcher_create(group, &desc, &layer));
  WORKS(velo_dispatcher_get_info(layer, &info));
  EXPECT(info.expert_count == 2 && info.first_expert == 0 && info.ranks == 1);
  WORKS(velo_routing_create(layer, &routing));
  WORKS(velo_routing_set(routing, stream, &choices, NULL, NULL));
  EXPECT(velo_routing_set(routing, stream, &choices, NULL, NULL) == VELO_ERR_STATE);
  WORKS(velo_routing_get_rows(routing, counts, 2, &all));
  EXPECT(all == 3 && counts[0] == 1 && counts[1] == 2);
  WORKS(velo_dispatcher_dispatch(layer, stream, routing, &tokens, &experts));
  EXPECT(rows[0] == 1 && rows[2] == 1 && rows[5] == 4);
  WORKS(velo_dispatcher_combine(layer, stream, routing, &experts, &weights, &out));
  EXPECT(y[0] == 5 && y[1] == 10 && y[3] == 16);
  WORKS(velo_dispatcher_combine_backward(layer, stream, routing, &out, &experts, &weights,
                                         &gradients, &dweights));
  EXPECT(drows[0] == 15 && drows[2] == 10 && dw[0] == 25 && dw[2] == 0);
  WORKS(velo_dispatcher_dispatch_backward(layer, stream, routing, &gradients, &dtokens));
  EXPECT(dx[0] == 25 && dx[3] == 64);
  WORKS(velo_routing_set(routing, stream, &choices, NULL, NULL));
  WORKS(velo_routing_reset(routing));
  velo_routing_destroy(routing);
  velo_dispatcher_destroy(layer);
  experts_with_capacity(stream, group, &choices);
  velo_group_destroy(group);
}

static int64_t gather_alone(void* user, const velo_host_call* call, const void* in, void* out,
                            int64_t bytes) {
  ++*(int*)user;
  if (call->timeout_ns < 1 || call->capacity < 1) return -1;
  memcpy(out, in, (size_t)bytes);
  return bytes;
}

/* Rank 1 has not come. */
static int64_t miss(void* user, const velo_host_call* call, const void* in, void* out,
                    int64_t bytes) {
  (void)user, (void)in, (void)out, (void)bytes;
  call->late[1] = 1;
  return -1;
}

static int64_t decline(void* user, const velo_host_call* call, velo_reduce_op op,
                       const velo_dtype* dtype, const void* in, void* out, int64_t count) {
  (void)call, (void)in, (void)out;
  *(int*)user += 100 * (op == VELO_REDUCE_MAX && dtype->code == VELO_DTYPE_INT && count == 2);
  return VELO_HOST_DECLINED;
}

static void release_alone(void* user) {
  *(int*)user += 10000;
}

static void over_a_host(velo_stream stream, velo_context context) {
  velo_host_collectives table = VELO_HOST_COLLECTIVES_INIT;
  velo_group_desc desc = VELO_GROUP_DESC_INIT;
  velo_group group = NULL;
  velo_group_info info = VELO_GROUP_INFO_INIT;
  velo_reduction most = VELO_REDUCTION_INIT;
  int calls = 0;
  int32_t values[2] = {3, -4};
  const velo_tensor x = TENSOR(values, VELO_DTYPE_INT, 32, 1, 2);
  desc.transport = VELO_TRANSPORT_HOST;
  desc.host = &table;
  desc.rank = 0;
  desc.size = 1;
  desc.flags = VELO_GROUP_VERIFY;
  EXPECT(velo_group_create(context, &desc, &group) == VELO_ERR_NULL);
  table.user = &calls;
  table.all_gather = gather_alone;
  table.all_reduce = decline;
  table.release = release_alone;
  WORKS(velo_group_create(context, &desc, &group));
  WORKS(velo_group_get_info(group, &info));
  EXPECT(info.transport == VELO_TRANSPORT_HOST && info.size == 1 && calls == 1);
  most.op = VELO_REDUCE_MAX;
  WORKS(velo_group_all_reduce(stream, group, &most, &x, &x));
  EXPECT(values[0] == 3 && values[1] == -4 && calls == 102);
  velo_group_destroy(group);
  EXPECT(calls == 10102);
  {
    velo_error_info why = VELO_ERROR_INFO_INIT;
    desc.size = 2;
    table.all_gather = miss;
    EXPECT(velo_group_create(context, &desc, &group) == VELO_ERR_PEER);
    WORKS(velo_last_error(&why));
    EXPECT(why.rank == 1);
  }
}

/* A host of two ranks: what a rank gives lies in the table until both ranks have come. Each host
 * has some of the functions, of which all collectives are made. The second rank is a thread. */
static struct {
  pthread_barrier_t both;
  unsigned char part[2][2][4096];
  int64_t bytes[2][2]; /* from, to */
  velo_context context;
  int rank[2], wrong[2];
} table_of_two;

static int64_t trade(void* user, const velo_host_call* call, const void* in,
                     const int64_t* in_bytes, void* out, const int64_t* out_bytes) {
  const int rank = *(const int*)user;
  int64_t from = 0, to = 0;
  if (call->timeout_ns < 1 || in_bytes[0] > 4096 || in_bytes[1] > 4096) return -1;
  for (int peer = 0; peer < 2; from += in_bytes[peer++]) {
    memcpy(table_of_two.part[rank][peer], (const unsigned char*)in + from, (size_t)in_bytes[peer]);
    table_of_two.bytes[rank][peer] = in_bytes[peer];
  }
  pthread_barrier_wait(&table_of_two.both);
  for (int peer = 0; peer < 2; to += out_bytes[peer++]) {
    table_of_two.wrong[rank] += table_of_two.bytes[peer][rank] != out_bytes[peer];
    memcpy((unsigned char*)out + to, table_of_two.part[peer][rank], (size_t)out_bytes[peer]);
  }
  pthread_barrier_wait(&table_of_two.both);
  return to;
}

/* Rank 0 gives 1 and 2 elements and takes 1 and 3; rank 1 gives 3 and 1, and takes 2 and 1. */
static int32_t exchanged(int rank, velo_stream stream, velo_context context) {
  static const int64_t gives[2][2] = {{1, 2}, {3, 1}}, takes[2][2] = {{1, 3}, {2, 1}};
  static const int32_t wanted[2][4] = {{10, 20, 21, 22}, {11, 12, 23, 0}};
  velo_host_collectives table = VELO_HOST_COLLECTIVES_INIT;
  velo_group_desc desc = VELO_GROUP_DESC_INIT;
  velo_group group = NULL;
  int32_t in[4] = {0}, out[4] = {0};
  const velo_tensor from = TENSOR(in, VELO_DTYPE_INT, 32, 1, rank == 0 ? 3 : 4);
  const velo_tensor to = TENSOR(out, VELO_DTYPE_INT, 32, 1, rank == 0 ? 4 : 3);
  int32_t status = VELO_OK;
  for (int i = 0; i < 4; ++i) in[i] = 10 * (rank + 1) + i;
  desc.transport = VELO_TRANSPORT_HOST;
  desc.host = &table;
  desc.rank = rank;
  desc.size = 2;
  table.user = &table_of_two.rank[rank];
  table.all_to_all = trade;
  status = velo_group_create(context, &desc, &group);
  if (status == VELO_OK)
    status =
        velo_group_all_to_all_v(stream, group, &from, gives[rank], NULL, takes[rank], NULL, &to);
  table_of_two.wrong[rank] += memcmp(out, wanted[rank], sizeof out) != 0;
  velo_group_destroy(group);
  return status;
}

/* Every rank's bytes side by side. */
static int64_t gather_two(void* user, const velo_host_call* call, const void* in, void* out,
                          int64_t bytes) {
  const int rank = *(const int*)user;
  if (call->timeout_ns < 1 || bytes > 4096) return -1;
  memcpy(table_of_two.part[rank][0], in, (size_t)bytes);
  pthread_barrier_wait(&table_of_two.both);
  for (int peer = 0; peer < 2; ++peer)
    memcpy((unsigned char*)out + peer * bytes, table_of_two.part[peer][0], (size_t)bytes);
  pthread_barrier_wait(&table_of_two.both);
  return 2 * bytes;
}

static int64_t broadcast_two(void* user, const velo_host_call* call, int32_t root, void* data,
                             int64_t bytes) {
  const int rank = *(const int*)user;
  if (call->timeout_ns < 1 || root < 0 || root > 1 || bytes > 4096) return -1;
  if (rank == root) memcpy(table_of_two.part[rank][0], data, (size_t)bytes);
  pthread_barrier_wait(&table_of_two.both);
  if (rank != root) memcpy(data, table_of_two.part[root][0], (size_t)bytes);
  pthread_barrier_wait(&table_of_two.both);
  return bytes;
}

/* A send ends when the other rank has received. */
static int64_t send_to(void* user, const velo_host_call* call, int32_t to, const void* data,
                       int64_t bytes) {
  const int rank = *(const int*)user;
  if (call->timeout_ns < 1 || to != 1 - rank || bytes > 4096) return -1;
  memcpy(table_of_two.part[rank][0], data, (size_t)bytes);
  table_of_two.bytes[rank][0] = bytes;
  pthread_barrier_wait(&table_of_two.both);
  pthread_barrier_wait(&table_of_two.both);
  return bytes;
}

static int64_t receive_from(void* user, const velo_host_call* call, int32_t from, void* data,
                            int64_t bytes) {
  const int rank = *(const int*)user;
  if (call->timeout_ns < 1 || from != 1 - rank || bytes > 4096) return -1;
  pthread_barrier_wait(&table_of_two.both);
  table_of_two.wrong[rank] += table_of_two.bytes[from][0] != bytes;
  memcpy(data, table_of_two.part[from][0], (size_t)bytes);
  pthread_barrier_wait(&table_of_two.both);
  return bytes;
}

/* Of both ranks in the other order, so the user of a rank in the part is the other's in the
 * host. */
static int64_t part_of_two(void* user, const velo_host_call* call, const int32_t* ranks,
                           int32_t count, velo_host_collectives* part) {
  const int rank = *(const int*)user;
  if (call->timeout_ns < 1) return -1;
  table_of_two.wrong[rank] += count != 2 || ranks[0] != 1 || ranks[1] != 0;
  part->user = &table_of_two.rank[1 - rank];
  part->all_gather = gather_two;
  return 0;
}

/* What each rank has is 10 times its rank, and more. */
static int32_t gathered(int rank, velo_host_collectives table, velo_stream stream,
                        velo_context context) {
  static const int32_t parted[2] = {1, 0};
  velo_group_desc desc = VELO_GROUP_DESC_INIT;
  velo_group group = NULL, part = NULL;
  int32_t own[2] = {10 * rank, 10 * rank + 1}, all[4] = {-1, -1, -1, -1}, many[1000];
  const velo_tensor from = TENSOR(own, VELO_DTYPE_INT, 32, 1, 2);
  const velo_tensor to = TENSOR(all, VELO_DTYPE_INT, 32, 1, 4);
  const velo_tensor spread = TENSOR(many, VELO_DTYPE_INT, 32, 1, 1000);
  int32_t status = VELO_OK;
  for (int i = 0; i < 1000; ++i) many[i] = 1000 * rank + i;
  desc.transport = VELO_TRANSPORT_HOST;
  desc.host = &table;
  desc.rank = rank;
  desc.size = 2;
  table.user = &table_of_two.rank[rank];
  status = velo_group_create(context, &desc, &group);
  if (status == VELO_OK) status = velo_group_all_gather(stream, group, &from, &to);
  table_of_two.wrong[rank] += all[0] != 0 || all[1] != 1 || all[2] != 10 || all[3] != 11;
  if (status == VELO_OK) status = velo_group_broadcast(stream, group, 0, &spread);
  table_of_two.wrong[rank] += many[0] != 0 || many[999] != 999;
  if (status == VELO_OK && table.part != NULL) {
    status = velo_group_create_part(group, parted, 2, NULL, &part);
    if (status == VELO_OK) status = velo_group_all_gather(stream, part, &from, &to);
    table_of_two.wrong[rank] += all[0] != 10 || all[1] != 11 || all[2] != 0 || all[3] != 1;
    velo_group_destroy(part);
  }
  velo_group_destroy(group);
  return status;
}

static int32_t over_tables(int rank, velo_stream stream, velo_context context) {
  velo_host_collectives parting = VELO_HOST_COLLECTIVES_INIT, spreading = parting;
  velo_host_collectives sending = parting;
  int32_t status = exchanged(rank, stream, context);
  parting.all_gather = gather_two, parting.broadcast = broadcast_two, parting.part = part_of_two;
  spreading.broadcast = broadcast_two;
  sending.send = send_to, sending.receive = receive_from;
  if (status == VELO_OK) status = gathered(rank, parting, stream, context);
  if (status == VELO_OK) status = gathered(rank, spreading, stream, context);
  if (status == VELO_OK) status = gathered(rank, sending, stream, context);
  return status;
}

static void* second_rank(void* status) {
  velo_stream stream = NULL;
  *(int32_t*)status = velo_context_stream(table_of_two.context, &stream);
  if (*(int32_t*)status == VELO_OK)
    *(int32_t*)status = over_tables(1, stream, table_of_two.context);
  return NULL;
}

static void over_a_host_of_two(velo_stream stream, velo_context context) {
  pthread_t thread;
  int32_t status = -1;
  table_of_two.rank[1] = 1;
  EXPECT(pthread_barrier_init(&table_of_two.both, NULL, 2) == 0);
  WORKS(velo_context_create(NULL, &table_of_two.context));
  EXPECT(pthread_create(&thread, NULL, second_rank, &status) == 0);
  WORKS(over_tables(0, stream, context));
  EXPECT(pthread_join(thread, NULL) == 0 && status == VELO_OK);
  EXPECT(table_of_two.wrong[0] == 0 && table_of_two.wrong[1] == 0);
  velo_context_destroy(table_of_two.context);
  pthread_barrier_destroy(&table_of_two.both);
}

void client_groups(velo_stream stream, velo_context context) {
  one_rank(stream, context);
  alone(stream, context);
  two_ranks(stream, context);
  buckets_of_one(stream, context);
  experts_of_one(stream, context);
  compared(stream, context);
  over_a_host(stream, context);
  over_a_host_of_two(stream, context);
}
