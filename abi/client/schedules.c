/* This part: schedules, timelines, mailboxes, executors; orders, times and violations that are
 * known; what each flag does. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>

#include "client.h"

static int same(velo_action action, velo_action_kind kind, int32_t stage, int32_t microbatch) {
  return action.kind == kind && action.stage == stage && action.microbatch == microbatch &&
         action.other_stage == -1 && action.other_microbatch == -1;
}

static void generated(void) {
  velo_schedule_desc desc = VELO_SCHEDULE_DESC_INIT;
  velo_schedule_info info = VELO_SCHEDULE_INFO_INIT;
  velo_schedule_costs costs = VELO_SCHEDULE_COSTS_INIT;
  velo_timeline_stats stats = VELO_TIMELINE_STATS_INIT;
  velo_timeline_rank rank = VELO_TIMELINE_RANK_INIT;
  velo_schedule schedule = NULL;
  velo_schedule lowered = NULL;
  velo_timeline timeline = NULL;
  velo_action actions[4];
  int64_t count = -1;
  velo_timeline_memory memory = VELO_TIMELINE_MEMORY_INIT;
  velo_path_step steps[6];
  char text[2048];
  desc.kind = VELO_SCHEDULE_1F1B;
  desc.ranks = 2;
  desc.microbatches = 2;
  desc.chunks = 2;
  REFUSES(velo_schedule_create(&desc, &schedule), VELO_ERR_ARGUMENT);
  desc.chunks = 0;
  WORKS(velo_schedule_create(&desc, &schedule));
  WORKS(velo_schedule_get_info(schedule, &info));
  EXPECT(info.kind == VELO_SCHEDULE_1F1B && info.stages == 2 && info.actions == 8);
  WORKS(velo_schedule_get_length(schedule, 1, &count));
  EXPECT(count == 4);
  WORKS(velo_schedule_get_actions(schedule, 1, 0, 4, actions)); /* 1F0 1B0 1F1 1B1 */
  EXPECT(same(actions[1], VELO_ACTION_B, 1, 0) && same(actions[2], VELO_ACTION_F, 1, 1));
  WORKS(velo_schedule_write(schedule, VELO_SCHEDULE_CSV, text, sizeof text, NULL));
  EXPECT(strcmp(text, "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n") == 0);
  WORKS(velo_schedule_check(schedule, &count));
  EXPECT(count == 0);
  WORKS(velo_schedule_lower(schedule, &lowered));
  WORKS(velo_schedule_get_actions(lowered, 1, 0, 4, actions)); /* 1RECV_F0 1F0 1RECV_F1 1B0 */
  EXPECT(same(actions[0], VELO_ACTION_RECV_F, 1, 0) && same(actions[3], VELO_ACTION_B, 1, 0));
  velo_schedule_destroy(lowered);
  costs.weight = 0.5;
  costs.weight_size = 2;
  costs.gradient_size = 4;
  costs.optimizer_size = 12;
  costs.activation_size = 1.5;
  costs.message_size = 0.5;
  WORKS(velo_schedule_simulate(schedule, &costs, &timeline));
  velo_schedule_destroy(schedule); /* the timeline stays */
  EXPECT(velo_schedule_get_info(schedule, &info) == VELO_ERR_HANDLE);
  WORKS(velo_timeline_get_stats(timeline, &stats));
  EXPECT(stats.makespan == 7.5 && stats.work == 5 && stats.beta == 2.5 && stats.sigma == 2.5);
  WORKS(velo_timeline_get_rank(timeline, 0, &rank));
  EXPECT(rank.last == 7.5 && rank.work == 5 && rank.peak_activations == 2);
  WORKS(velo_timeline_write(timeline, VELO_TIMELINE_SUMMARY_JSON, text, sizeof text, NULL));
  EXPECT(strstr(text, "\"makespan\": 7.5") != NULL);
  WORKS(velo_timeline_get_path(timeline, 6, steps, &count)); /* 0F0 1F0 1B0 1F1 1B1 0B1 */
  EXPECT(count == 6 && steps[0].cause == VELO_PATH_START && steps[1].cause == VELO_PATH_MESSAGE);
  EXPECT(steps[2].cause == VELO_PATH_RANK && steps[2].index == 1 && steps[2].begin == 2);
  EXPECT(same(steps[5].action, VELO_ACTION_B, 0, 1) && steps[5].rank == 0);
  EXPECT(steps[5].begin == 6 && steps[5].length == 1.5 && steps[5].wait == 0);
  WORKS(velo_timeline_get_memory(timeline, 1, &memory)); /* while 1B0 goes on */
  EXPECT(memory.time == 2 && memory.total == 20 && memory.weights == 2 && memory.gradients == 4);
  EXPECT(memory.optimizer == 12 && memory.activations == 1.5 && memory.messages == 0.5);
  EXPECT(memory.offloaded == 0);
  velo_timeline_destroy(timeline);
  EXPECT(velo_timeline_get_stats(timeline, &stats) == VELO_ERR_HANDLE);
}

static void described(void) {
  velo_schedule_desc desc = VELO_SCHEDULE_DESC_INIT;
  velo_stage_info stage = VELO_STAGE_INFO_INIT;
  velo_schedule schedule = NULL;
  const char* name = NULL;
  const int32_t noop = 2;
  WORKS(velo_schedule_kind_name(VELO_SCHEDULE_ZBV_GREEDY, &name));
  EXPECT(strcmp(name, "zbv-greedy") == 0);
  EXPECT(velo_schedule_kind_name(99, &name) == VELO_ERR_ARGUMENT);
  desc.kind = VELO_SCHEDULE_1F1B;
  desc.ranks = 2;
  desc.microbatches = 2;
  desc.layout = "Et|(t)*2L";
  desc.noop_layers = &noop;
  desc.noop_count = 1;
  WORKS(velo_schedule_create(&desc, &schedule));
  WORKS(velo_schedule_get_stage(schedule, 1, &stage));
  EXPECT(stage.rank == 1 && stage.first_layer == 1 && stage.layers == 2 && stage.noop_layers == 1);
  EXPECT(stage.loss == 1 && stage.embedding == 0);
  REFUSES(velo_schedule_get_stage(schedule, 2, &stage), VELO_ERR_ARGUMENT);
  velo_schedule_destroy(schedule);
}

static int started[2]; /* what was computed, and messages */
static velo_status start(void* user, velo_stream stream, const velo_sublayer_step* step) {
  (void)user;
  (void)stream;
  ++started[step->message];
  return step->kind == VELO_SUBLAYER_COMBINE_F ? (velo_status)started[0] - 3 : VELO_OK;
}
static int failures;
static void failed(void* user, const velo_sublayer_step* step, velo_status status) {
  (void)user;
  failures += step->kind == VELO_SUBLAYER_COMBINE_F && status == VELO_ERR_FOREIGN;
}

/* Attention, dispatch beside the shared expert, the experts, combine. */
static void overlapped(velo_stream stream) {
  velo_sublayers_desc desc = VELO_SUBLAYERS_DESC_INIT;
  velo_sublayers_info info = VELO_SUBLAYERS_INFO_INIT;
  velo_sublayers_run_desc run = VELO_SUBLAYERS_RUN_DESC_INIT;
  velo_sublayers plan = NULL;
  velo_sublayer_step steps[5];
  velo_sublayer_span spans[5];
  int64_t needs[1] = {-1}, count = 0;
  char out[24];
  desc.forward_layers = 1;
  desc.slices = 2;
  EXPECT(velo_sublayers_create(&desc, &plan) == VELO_ERR_ARGUMENT && plan == NULL);
  desc.slices = 1;
  desc.flags = VELO_SUBLAYERS_SHARED;
  WORKS(velo_sublayers_create(&desc, &plan));
  WORKS(velo_sublayers_get_info(plan, &info));
  EXPECT(info.steps == 5 && info.messages == 2 && info.makespan == 4 && info.exposed == 1);
  WORKS(velo_sublayers_get_steps(plan, steps, 5, &count));
  EXPECT(count == 5 && steps[1].kind == VELO_SUBLAYER_DISPATCH_F && steps[1].message == 1);
  WORKS(velo_sublayers_get_needs(plan, 3, needs, 1, &count));
  EXPECT(count == 1 && needs[0] == 1);
  run.compute = run.message = start;
  run.failed = failed;
  run.spans = spans;
  WORKS(velo_sublayers_run(stream, stream, plan, &run));
  EXPECT(started[0] == 3 && started[1] == 2 && spans[4].begin >= spans[3].end && failures == 0);
  WORKS(velo_sublayers_write(plan, spans, VELO_SUBLAYERS_JSON, out, sizeof out, NULL));
  EXPECT(strncmp(out, "{\"forward_layers\": 1,", 21) == 0);
  REFUSES(velo_sublayers_run(stream, stream, plan, &run), VELO_ERR_FOREIGN);
  EXPECT(failures == 1 && spans[4].end == -1);
  velo_sublayers_destroy(plan);
  EXPECT(velo_sublayers_get_info(plan, &info) == VELO_ERR_HANDLE);
}

static void read_from_text(void) {
  static const char rows[] = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B2\n";
  velo_schedule_desc none = VELO_SCHEDULE_DESC_INIT;
  velo_violation violation = VELO_VIOLATION_INIT;
  velo_schedule schedule = NULL;
  velo_timeline timeline = NULL;
  int64_t count = -1;
  WORKS(velo_schedule_create(&none, &schedule));
  REFUSES(velo_schedule_read(schedule, VELO_SCHEDULE_CSV, "0F0,0G0\n", 8), VELO_ERR_ARGUMENT);
  WORKS(velo_schedule_read(schedule, VELO_SCHEDULE_CSV, rows, sizeof rows - 1));
  REFUSES(velo_schedule_get_violation(schedule, 0, &violation), VELO_ERR_STATE);
  WORKS(velo_schedule_check(schedule, &count));
  EXPECT(count == 4); /* 1B2 before 1F2, which is missing, 0F2 and 0B2 too, and 1B1 */
  WORKS(velo_schedule_get_violation(schedule, 0, &violation));
  EXPECT(violation.code == VELO_VIOLATION_ORDER && violation.rank == 1 && violation.index == 3);
  EXPECT(same(violation.action, VELO_ACTION_B, 1, 2) && violation.reason[0] != 0);
  REFUSES(velo_schedule_simulate(schedule, NULL, &timeline), VELO_ERR_STATE);
  velo_schedule_destroy(schedule);
}

/* Counts the actions of a rank that is alone, and hands on a tensor from its first stage. */
static velo_status counted(void* user, velo_executor_call* call) {
  static const int64_t shape[] = {2};
  static float numbers[2];
  int* counts = (int*)user;
  ++counts[call->action.kind];
  if (call->action.kind == VELO_ACTION_F && call->action.stage == 0) {
    numbers[0] = 1.5f;
    call->outputs[0] = F32(numbers, 1, shape);
    call->output_count = 1;
  }
  if (call->action.kind == VELO_ACTION_F && call->action.stage == 1) {
    EXPECT(call->inputs.count == 1 && call->inputs.data[0].shape[0] == 2);
    EXPECT(((const float*)call->inputs.data[0].data)[0] == 1.5f);
  }
  return call->action.microbatch < 9 ? VELO_OK : VELO_ERR_IO;
}
static void let_go(void* user, const velo_action* action) {
  EXPECT(same(*action, VELO_ACTION_F, 0, action->microbatch));
  ++((int*)user)[0];
}

static void carried_out(velo_stream stream, velo_context context) {
  velo_schedule_desc desc = VELO_SCHEDULE_DESC_INIT;
  velo_executor_desc part = VELO_EXECUTOR_DESC_INIT;
  velo_link link = VELO_LINK_INIT;
  velo_timeline_rank rank = VELO_TIMELINE_RANK_INIT;
  velo_schedule schedule = NULL;
  velo_timeline timeline = NULL;
  velo_mailbox mailbox = NULL;
  velo_group group = NULL;
  velo_executor executor = NULL;
  int counts[32] = {0}, number = 7, got = 0;
  double before = 0;
  desc.kind = VELO_SCHEDULE_INTERLEAVED;
  desc.ranks = 1;
  desc.microbatches = 3;
  WORKS(velo_schedule_create(&desc, &schedule));
  REFUSES(velo_mailbox_create(1, 0, &mailbox), VELO_ERR_ARGUMENT);
  WORKS(velo_mailbox_create(1, 50000000, &mailbox)); /* nanoseconds */
  REFUSES(velo_mailbox_get_link(mailbox, 1, &link), VELO_ERR_ARGUMENT);
  WORKS(velo_mailbox_get_link(mailbox, 0, &link));
  WORKS(link.send(link.user, 0, &number, sizeof number));
  WORKS(link.receive(link.user, 0, &got, sizeof got));
  EXPECT(got == 7);
  before = client_seconds();
  EXPECT(link.receive(link.user, 0, &got, sizeof got) == VELO_ERR_TIMEOUT);
  EXPECT(client_seconds() - before > 0.04 && client_seconds() - before < 5);
  velo_mailbox_destroy(mailbox);
  EXPECT(velo_mailbox_get_link(mailbox, 0, &link) == VELO_ERR_HANDLE);
  WORKS(velo_group_create(context, NULL, &group));
  WORKS(velo_group_get_link(group, &link));
  EXPECT((link.flags & VELO_LINK_WAITS) != 0);
  got = 0;
  WORKS(link.send(link.user, 0, &number, sizeof number)); /* to itself */
  WORKS(link.receive(link.user, 0, &got, sizeof got));
  EXPECT(got == 7);
  EXPECT(link.send(link.user, 1, &number, sizeof number) == VELO_ERR_ARGUMENT);
  velo_group_destroy(group);
  part.user = counts;
  part.flags = VELO_EXECUTOR_RECORD;
  part.forward = &counted;
  REFUSES(velo_executor_create(context, schedule, &part, &executor), VELO_ERR_NULL);
  part.backward = &counted;
  part.released = &let_go;
  WORKS(velo_executor_create(context, schedule, &part, &executor));
  velo_schedule_destroy(schedule); /* the executor stays */
  WORKS(velo_executor_run(stream, executor));
  EXPECT(counts[VELO_ACTION_F] == 6 && counts[VELO_ACTION_B] == 6 && counts[0] == 3);
  WORKS(velo_executor_get_timeline(executor, &timeline));
  WORKS(velo_timeline_get_rank(timeline, 0, &rank));
  EXPECT(rank.first == 0 && rank.last > 0 && rank.peak_activations > 0.5);
  velo_timeline_destroy(timeline);
  WORKS(velo_executor_cancel(executor));
  EXPECT(velo_executor_run(stream, executor) == VELO_ERR_PEER);
  velo_executor_destroy(executor);
  EXPECT(velo_executor_run(stream, executor) == VELO_ERR_HANDLE);
}

/* A step whose norm is beyond its bound, of two ranks. The first knows its own norm when it steps,
 * the second both. The arguments of callbacks are checked when all is done: they run on other
 * threads. */
typedef struct {
  int rank, forwards, backwards, decided_alone, decided, stepped, wrong;
} callback_counts;

static velo_status any_forward(void* user, velo_executor_call* call) {
  callback_counts* rank = (callback_counts*)user;
  ++*(call->action.kind == VELO_ACTION_F ? &rank->forwards : &rank->backwards);
  rank->wrong += call->action.stage != rank->rank;
  return VELO_OK;
}
static velo_status measured(void* user, velo_stream stream, void* state) {
  callback_counts* rank = (callback_counts*)user;
  rank->wrong += stream == NULL;
  *(double*)state = 4 + rank->rank;
  return VELO_OK;
}
static velo_status clipped(void* user, const void* states, int32_t known, int32_t ranks,
                           double* factor) {
  callback_counts* rank = (callback_counts*)user;
  const double* norms = (const double*)states;
  ++*(known == 1 ? &rank->decided_alone : &rank->decided);
  rank->wrong += ranks != 2 || known < 1 || known > 2 || norms[0] != 4;
  rank->wrong += known == 2 && norms[1] != 5;
  *factor = 0.5;
  return VELO_OK;
}
static velo_status stepped(void* user, velo_stream stream, const velo_action* action, double factor,
                           int32_t final) {
  callback_counts* rank = (callback_counts*)user;
  (void)stream;
  rank->wrong += action->kind != VELO_ACTION_OPTIMIZER || action->stage != rank->rank;
  rank->wrong += factor != 0.5 || final != (rank->rank == 1);
  ++rank->stepped;
  return VELO_OK;
}
static velo_status put_back(void* user, velo_stream stream) {
  (void)user;
  (void)stream;
  return VELO_ERR_IO;
}

/* A step of a rank, on its own thread; -1 = it was settled before settle. */
typedef struct {
  velo_stream stream;
  velo_executor executor;
  int32_t status;
} run_of_rank;

static void* run_rank(void* of) {
  run_of_rank* rank = (run_of_rank*)of;
  velo_executor_stats stats = VELO_EXECUTOR_STATS_INIT;
  rank->status = velo_executor_run(rank->stream, rank->executor);
  if (rank->status == VELO_OK) rank->status = velo_executor_get_stats(rank->executor, &stats);
  if (rank->status == VELO_OK && stats.steps != 0) rank->status = -1;
  if (rank->status == VELO_OK) rank->status = velo_executor_settle(rank->stream, rank->executor);
  return NULL;
}

static void validated(velo_context context) {
  velo_schedule_desc desc = VELO_SCHEDULE_DESC_INIT;
  velo_executor_desc part = VELO_EXECUTOR_DESC_INIT;
  velo_executor_validation late = VELO_EXECUTOR_VALIDATION_INIT;
  velo_executor_stats stats = VELO_EXECUTOR_STATS_INIT;
  velo_link link = VELO_LINK_INIT;
  velo_schedule schedule = NULL;
  velo_mailbox mailbox = NULL;
  velo_context contexts[2] = {context, NULL};
  velo_executor refused = NULL;
  run_of_rank runs[2] = {{NULL, NULL, -1}, {NULL, NULL, -1}};
  pthread_t second;
  callback_counts ranks[2];
  int64_t length = 0;
  int rank = 0;
  memset(ranks, 0, sizeof ranks);
  desc.kind = VELO_SCHEDULE_1F1B;
  desc.ranks = 2;
  desc.microbatches = 2;
  desc.flags = VELO_SCHEDULE_OPTIMIZER;
  WORKS(velo_schedule_create(&desc, &schedule));
  WORKS(velo_schedule_get_length(schedule, 0, &length));
  EXPECT(length == 5);
  WORKS(velo_context_create(NULL, &contexts[1]));
  WORKS(velo_mailbox_create(2, INT64_C(20000000000), &mailbox));
  late.state_size = sizeof(double);
  late.measure = &measured;
  late.decide = &clipped;
  late.step = &stepped;
  part.forward = part.backward = &any_forward;
  part.validation = &late;
  part.link = &link;
  WORKS(velo_mailbox_get_link(mailbox, 0, &link));
  REFUSES(velo_executor_create(context, schedule, &part, &refused), VELO_ERR_NULL);
  late.rollback = &put_back;
  for (rank = 0; rank < 2; ++rank) {
    ranks[rank].rank = part.rank = rank;
    part.user = &ranks[rank];
    WORKS(velo_mailbox_get_link(mailbox, rank, &link));
    WORKS(velo_context_stream(contexts[rank], &runs[rank].stream));
    WORKS(velo_executor_create(contexts[rank], schedule, &part, &runs[rank].executor));
  }
  EXPECT(pthread_create(&second, NULL, run_rank, &runs[1]) == 0);
  run_rank(&runs[0]);
  EXPECT(pthread_join(second, NULL) == 0);
  for (rank = 0; rank < 2; ++rank) {
    EXPECT(runs[rank].status == VELO_OK);
    WORKS(velo_executor_get_stats(runs[rank].executor, &stats));
    EXPECT(stats.steps == 1 && stats.rolled_back == 0 && stats.repeated == 0);
    EXPECT(ranks[rank].forwards == 2 && ranks[rank].backwards == 2 && ranks[rank].stepped == 1);
    EXPECT(ranks[rank].decided_alone == (rank == 0) && ranks[rank].decided == 1 + rank);
    EXPECT(ranks[rank].wrong == 0);
    velo_executor_destroy(runs[rank].executor);
  }
  velo_mailbox_destroy(mailbox);
  velo_schedule_destroy(schedule);
  velo_context_destroy(contexts[1]);
}

/* What each flag does to the order of one of two ranks: how many of its actions are of a kind, and
 * where the first of them is. */
static const struct {
  velo_schedule_kind kind;
  uint32_t flag;
  int32_t rank;
  velo_action_kind action;
  int without, at_without, with, at_with;
} flags[] = {
    {VELO_SCHEDULE_INTERLEAVED, VELO_SCHEDULE_EXTRA_WARMUP, 0, VELO_ACTION_B, 12, 5, 12, 6},
    {VELO_SCHEDULE_INTERLEAVED, VELO_SCHEDULE_OVERLAP, 0, VELO_ACTION_FB, 0, -1, 7, 5},
    {VELO_SCHEDULE_DUALPIPEV, VELO_SCHEDULE_NO_DW_DETACH, 0, VELO_ACTION_W, 3, 5, 1, 5},
    {VELO_SCHEDULE_RIPIPE, VELO_SCHEDULE_IN_ADVANCE, 0, VELO_ACTION_RECOMPUTE, 2, 17, 12, 5},
    {VELO_SCHEDULE_NANOPIPE, VELO_SCHEDULE_SWAP, 1, VELO_ACTION_OFFLOAD, 0, -1, 2, 4},
    {VELO_SCHEDULE_1F1B, VELO_SCHEDULE_OPTIMIZER, 0, VELO_ACTION_OPTIMIZER, 0, -1, 1, 12},
};

static void flagged(void) {
  velo_action actions[200];
  size_t each = 0;
  for (each = 0; each < sizeof flags / sizeof flags[0]; ++each) {
    int with = 0, at[2] = {-1, -1}, count[2] = {0, 0};
    for (with = 0; with < 2; ++with) {
      velo_schedule_desc desc = VELO_SCHEDULE_DESC_INIT;
      velo_schedule schedule = NULL;
      int64_t length = 0, i = 0;
      desc.kind = flags[each].kind;
      desc.ranks = 2;
      desc.microbatches = 6;
      desc.flags = with ? flags[each].flag : 0;
      WORKS(velo_schedule_create(&desc, &schedule));
      WORKS(velo_schedule_get_length(schedule, flags[each].rank, &length));
      EXPECT(length <= 200);
      WORKS(velo_schedule_get_actions(schedule, flags[each].rank, 0, length, actions));
      for (i = 0; i < length; ++i) {
        if (actions[i].kind != flags[each].action) continue;
        if (count[with]++ == 0) at[with] = (int)i;
      }
      velo_schedule_destroy(schedule);
    }
    client_report(count[0] == flags[each].without && at[0] == flags[each].at_without &&
                      count[1] == flags[each].with && at[1] == flags[each].at_with,
                  "a flag", "flagged", (int)each);
  }
}

/* 16 rows over 4 ranks of a ring: rank 0 has 0 1 14 15, and meets block 3 in step 1. */
static void sequences(void) {
  velo_sequence_plan plan = NULL;
  velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
  velo_sequence_info info = VELO_SEQUENCE_INFO_INIT;
  velo_sequence_step step = VELO_SEQUENCE_STEP_INIT;
  velo_sequence_task task = VELO_SEQUENCE_TASK_INIT;
  velo_sequence_message message = VELO_SEQUENCE_MESSAGE_INIT;
  int64_t spans[4] = {-1, -1, -1, -1}, count = 0;
  char out[64];
  desc.cp = 4;
  desc.sequence = 16;
  desc.heads = 2;
  desc.head_dim = 8;
  desc.window = 3;
  EXPECT(velo_sequence_plan_create(&desc, &plan) == VELO_ERR_ARGUMENT && plan == NULL);
  desc.window = 1;
  WORKS(velo_sequence_plan_create(&desc, &plan));
  WORKS(velo_sequence_plan_get_info(plan, &info));
  EXPECT(info.cp == 4 && info.sequence == 16 && info.forward_steps == 4);
  EXPECT(info.gradient_steps == 4);
  WORKS(velo_sequence_plan_get_rows(plan, 0, spans, 2, &count));
  EXPECT(count == 2 && spans[1] == 2 && spans[2] == 14 && spans[3] == 16);
  WORKS(velo_sequence_plan_get_step(plan, VELO_SEQUENCE_FORWARD, 0, 0, &step));
  EXPECT(step.cells == 20 && step.tasks == 1 && step.sends == 2 && step.receives == 0);
  EXPECT(step.bytes_sent == 2 * 4 * 2 * 8 * 2 && step.bytes_received == 0);
  WORKS(velo_sequence_plan_get_task(plan, VELO_SEQUENCE_FORWARD, 0, 1, 0, &task));
  EXPECT(task.cells == VELO_SEQUENCE_CELLS_ALL && task.queries == 2 && task.keys == 4);
  EXPECT(task.heads_begin == 0 && task.heads_end == 2);
  WORKS(velo_sequence_plan_get_message(plan, VELO_SEQUENCE_FORWARD, 0, 1, VELO_SEQUENCE_RECEIVED, 1,
                                       &message));
  EXPECT(message.content == VELO_SEQUENCE_V && message.from == 3 && message.to == 0);
  EXPECT(message.step == 0 && message.needed == 1 && message.rows == 4 && message.kept == 0);
  WORKS(velo_sequence_plan_get_spans(plan, VELO_SEQUENCE_FORWARD, 0, 1, VELO_SEQUENCE_TASK_KEYS, 0,
                                     spans, 2, &count));
  EXPECT(count == 1 && spans[0] == 6 && spans[1] == 10);
  WORKS(velo_sequence_plan_check(plan));
  WORKS(velo_sequence_plan_write(plan, VELO_SEQUENCE_JSON, out, sizeof out, NULL));
  EXPECT(strncmp(out, "{\"rows\": [[0, 1, 14, 15]", 24) == 0);
  velo_sequence_plan_destroy(plan);
  EXPECT(velo_sequence_plan_check(plan) == VELO_ERR_HANDLE);
  desc.kind = VELO_SEQUENCE_ADAPTIVE;
  WORKS(velo_sequence_plan_create(&desc, &plan));
  WORKS(velo_sequence_plan_get_info(plan, &info));
  EXPECT(info.rounds == 3 && info.rule_rounds == 3 && info.kv_layers == 0);
  velo_sequence_plan_destroy(plan);
}

/* Expert 0 has most rows and gets a copy: 30 on each rank beside 20 rows of others. */
static void experts(void) {
  const int64_t loads[] = {60, 20, 10, 10}, current[] = {0, 1, -1, 2, 3, -1};
  velo_expert_plan plan = NULL;
  velo_expert_plan_desc desc = VELO_EXPERT_PLAN_DESC_INIT;
  velo_expert_plan_info info = VELO_EXPERT_PLAN_INFO_INIT;
  int64_t found[2] = {-1, -1}, count = 0;
  char out[32];
  desc.ranks = 2;
  desc.experts = 4;
  desc.loads = loads;
  EXPECT(velo_expert_plan_create(&desc, &plan) == VELO_ERR_ARGUMENT && plan == NULL);
  desc.slots = 3;
  desc.current = current;
  WORKS(velo_expert_plan_create(&desc, &plan));
  WORKS(velo_expert_plan_get_info(plan, &info));
  EXPECT(info.copies == 5 && info.busiest == 50 && info.idlest == 50 && info.kept == 0);
  EXPECT(info.moved == 1);
  WORKS(velo_expert_plan_get_ranks(plan, 0, found, 2, &count));
  EXPECT(count == 2 && found[0] == 0 && found[1] == 1);
  WORKS(velo_expert_plan_get_experts(plan, 0, found, 2, &count));
  EXPECT(count == 2 && found[0] == 0 && found[1] == 1);
  WORKS(velo_expert_plan_write(plan, VELO_EXPERT_PLAN_JSON, out, sizeof out, NULL));
  EXPECT(strncmp(out, "{\"ranks\": 2, \"slots\": 3", 23) == 0);
  velo_expert_plan_destroy(plan);
  EXPECT(velo_expert_plan_get_info(plan, &info) == VELO_ERR_HANDLE);
}

void client_schedules(velo_stream stream, velo_context context) {
  carried_out(stream, context);
  validated(context);
  generated();
  flagged();
  described();
  overlapped(stream);
  read_from_text();
  sequences();
  experts();
}
