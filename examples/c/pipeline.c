/* A pipeline in C, with next to no bubble: a chain of matrix products is cut into stages, which two
 * ranks, threads of this process, carry forward and back in the order of ZB-V.
 *
 *     pipeline_c DIR      simulated.svg, measured.svg and measured.json, for Perfetto, go there
 *
 * A schedule is a value: it is made, proven and priced before anything runs. A stage's work is
 * functions of the host, here three: forward (F), the gradient of its inputs (I), for which the
 * stage before waits, and that of its weights (W), for which no stage waits, so that it fills
 * bubbles. An executor, one for each rank, calls them in the order of the rank's row and sends a
 * stage's output to the rank of the next.
 *
 * The gradients are, bit for bit, those of one thread that goes through the stages in turn. That
 * thread also shows what F, I and W take, for which the schedule is simulated.
 *
 * For another kind two things change: STAGES (1F1B has one on each rank, ZB-V two), and the
 * functions: 1F1B has B, both gradients at once, so that desc.backward takes the place of
 * desc.input and desc.weight.
 *
 * Ranks that are processes have their links from a group (velo_group_get_link) instead of a
 * mailbox; the rest stays. Build it against an installed velo with: cc pipeline.c $(pkg-config
 * --cflags --libs velo) -pthread
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime, mkstemp */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <velo/velo.h>

enum { RANKS = 2, STAGES = 2 * RANKS, LAST = STAGES - 1, MICROBATCHES = 8 };
enum { ROWS = 256, WIDTH = 512 }; /* of a micro-batch; a weight is WIDTH x WIDTH */

#define TRY(call) \
  if ((call) != VELO_OK) return complain()

static int complain(void) { /* of the calling thread's last failure */
  char text[1024];
  velo_error_text(text, sizeof text, NULL);
  fprintf(stderr, "%s\n", text);
  return 1;
}

/* ---- The model: out = in * weight, stage by stage; the loss is half the sum of the last one's
 * squares, so that its gradient is the output itself. */

static float batch[MICROBATCHES][ROWS * WIDTH];
static struct stage {
  float weight[WIDTH * WIDTH], gradient[WIDTH * WIDTH];
  struct kept { /* of each micro-batch, from F to W */
    const float *in, *out_gradient;
    float out[ROWS * WIDTH], in_gradient[ROWS * WIDTH];
  } of[MICROBATCHES];
} model[STAGES];

static const int64_t rows[2] = {ROWS, WIDTH}, square[2] = {WIDTH, WIDTH};

static velo_tensor view(const float* data, const int64_t* shape) {
  const velo_dtype f32 = {VELO_DTYPE_FLOAT, 32, 1};
  const velo_device cpu = {VELO_DEVICE_CPU, 0};
  const velo_tensor made = {(void*)data, cpu, 2, f32, shape, NULL, 0};
  return made;
}

static velo_status product(velo_stream stream, velo_matmul_args how, velo_tensor a, velo_tensor b,
                           velo_tensor c) {
  how.a = &a;
  how.b = &b;
  how.c = &c;
  return velo_matmul(stream, &how);
}

static velo_status forward(velo_stream stream, int s, int m) {
  struct kept* const k = &model[s].of[m];
  const velo_matmul_args plain = VELO_MATMUL_ARGS_INIT;
  return product(stream, plain, view(k->in, rows), view(model[s].weight, square),
                 view(k->out, rows));
}

static velo_status input_gradient(velo_stream stream, int s, int m) {
  struct kept* const k = &model[s].of[m];
  velo_matmul_args how = VELO_MATMUL_ARGS_INIT;
  how.transpose_b = 1;
  return product(stream, how, view(k->out_gradient, rows), view(model[s].weight, square),
                 view(k->in_gradient, rows));
}

static velo_status weight_gradient(velo_stream stream, int s, int m) {
  struct kept* const k = &model[s].of[m];
  velo_matmul_args how = VELO_MATMUL_ARGS_INIT;
  how.transpose_a = 1;
  how.accumulate = 1;
  return product(stream, how, view(k->in, rows), view(k->out_gradient, rows),
                 view(model[s].gradient, square));
}

static void fill(float* numbers, int count, float size) {
  static uint32_t state = 1;
  for (int i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    numbers[i] = size * ((float)(state >> 8) / (float)(1u << 23) - 1.0f);
  }
}

static void forget_gradients(void) {
  for (int s = 0; s <= LAST; ++s) memset(model[s].gradient, 0, sizeof model[s].gradient);
}

/* ---- One thread: what is to come of it, and what it takes. ---- */

static struct {
  int64_t forward, input, weight; /* microseconds, of all stages and micro-batches */
} took;

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int alone(velo_stream stream) {
  took.forward = took.input = took.weight = 0;
  forget_gradients();
  for (int m = 0; m < MICROBATCHES; ++m) {
    for (int s = 0; s <= LAST; ++s) {
      model[s].of[m].in = s == 0 ? batch[m] : model[s - 1].of[m].out;
      took.forward -= now();
      TRY(forward(stream, s, m));
      took.forward += now();
    }
    for (int s = LAST; s >= 0; --s) {
      struct kept* const k = &model[s].of[m];
      k->out_gradient = s == LAST ? k->out : model[s + 1].of[m].in_gradient;
      took.input -= now();
      TRY(input_gradient(stream, s, m));
      took.input += now();
      took.weight -= now();
      TRY(weight_gradient(stream, s, m));
      took.weight += now();
    }
  }
  return 0;
}

/* ---- The schedule, and what it would take. ---- */

static int make(velo_schedule* schedule) {
  velo_schedule_desc desc = VELO_SCHEDULE_DESC_INIT;
  velo_violation first = VELO_VIOLATION_INIT;
  velo_schedule_info info = VELO_SCHEDULE_INFO_INIT;
  int64_t violations;
  desc.kind = VELO_SCHEDULE_ZBV;
  desc.ranks = RANKS;
  desc.microbatches = MICROBATCHES;
  TRY(velo_schedule_create(&desc, schedule));
  TRY(velo_schedule_get_info(*schedule, &info));
  if (info.stages != STAGES)
    return fprintf(stderr, "the schedule has %d stages, the model %d\n", info.stages, STAGES), 1;
  TRY(velo_schedule_check(*schedule, &violations)); /* for those that one has read, or made */
  if (violations == 0) return 0;
  TRY(velo_schedule_get_violation(*schedule, 0, &first));
  return fprintf(stderr, "rank %d: %s\n", first.rank, first.reason), 1;
}

static int simulate(velo_schedule schedule, velo_timeline* simulated) {
  velo_schedule_costs costs = VELO_SCHEDULE_COSTS_INIT; /* of all stages of a rank, in ms */
  costs.forward = (double)(took.forward / (MICROBATCHES * RANKS)) / 1000;
  costs.input = (double)(took.input / (MICROBATCHES * RANKS)) / 1000;
  costs.weight = (double)(took.weight / (MICROBATCHES * RANKS)) / 1000;
  TRY(velo_schedule_simulate(schedule, &costs, simulated));
  return 0;
}

/* ---- The pipeline. The tensors that F and I get live until W of the same stage and micro-batch is
 * done. Their outputs are memory of the host, and live as long. ---- */

static velo_status on_forward(void* user, velo_executor_call* call) {
  const int s = call->action.stage, m = call->action.microbatch;
  struct kept* const k = &model[s].of[m];
  (void)user;
  k->in = s == 0 ? batch[m] : call->inputs.data[0].data;
  if (s < LAST) call->outputs[call->output_count++] = view(k->out, rows);
  return forward(call->stream, s, m);
}

static velo_status on_input(void* user, velo_executor_call* call) {
  const int s = call->action.stage, m = call->action.microbatch;
  struct kept* const k = &model[s].of[m];
  (void)user;
  k->out_gradient = s == LAST ? k->out : call->inputs.data[0].data;
  if (s > 0) call->outputs[call->output_count++] = view(k->in_gradient, rows);
  return input_gradient(call->stream, s, m);
}

static velo_status on_weight(void* user, velo_executor_call* call) {
  (void)user;
  return weight_gradient(call->stream, call->action.stage, call->action.microbatch);
}

static struct rank {
  pthread_t thread;
  velo_context context;
  velo_stream stream;
  velo_executor executor;
  velo_timeline measured;
  int failed;
} team[RANKS];

static int enter(struct rank* mine, int number, velo_schedule schedule, velo_mailbox mailbox) {
  velo_context_desc context = VELO_CONTEXT_DESC_INIT;
  velo_link link = VELO_LINK_INIT;
  velo_executor_desc desc = VELO_EXECUTOR_DESC_INIT;
  context.threads = 1; /* that of the rank */
  TRY(velo_context_create(&context, &mine->context));
  TRY(velo_context_stream(mine->context, &mine->stream));
  TRY(velo_mailbox_get_link(mailbox, number, &link));
  desc.rank = number;
  desc.flags = VELO_EXECUTOR_RECORD;
  desc.link = &link;
  desc.forward = on_forward;
  desc.input = on_input;
  desc.weight = on_weight;
  TRY(velo_executor_create(mine->context, schedule, &desc, &mine->executor));
  return 0;
}

static int run_row(struct rank* mine) {
  velo_timeline_destroy(mine->measured); /* of the run before, if any */
  mine->measured = NULL;
  TRY(velo_executor_run(mine->stream, mine->executor));
  TRY(velo_executor_get_timeline(mine->executor, &mine->measured)); /* of all ranks */
  return 0;
}

static void* run_rank(void* which) {
  struct rank* const mine = which;
  mine->failed = run_row(mine);
  return NULL;
}

static int together(void) {
  int failed = 0;
  forget_gradients();
  for (int r = 0; r < RANKS; ++r)
    if (pthread_create(&team[r].thread, NULL, run_rank, &team[r]) != 0) abort();
  for (int r = 0; r < RANKS; ++r) {
    pthread_join(team[r].thread, NULL);
    failed |= team[r].failed;
  }
  return failed;
}

/* ---- What came of it. ---- */

static int save(velo_timeline from, velo_timeline_format format, const char* folder,
                const char* name) {
  char path[4096], beside[4104], *text;
  uint64_t size;
  FILE* file;
  int made;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  snprintf(beside, sizeof beside, "%s.XXXXXX", path);
  TRY(velo_timeline_write(from, format, NULL, 0, &size));
  if ((text = malloc(size)) == NULL) abort();
  TRY(velo_timeline_write(from, format, text, size, NULL));
  /* A new file takes the place of an older one, and never writes through a link. */
  if ((made = mkstemp(beside)) < 0) return perror(beside), 1;
  file = fdopen(made, "w");
  if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0 || rename(beside, path) != 0)
    return perror(path), remove(beside), 1;
  free(text);
  return printf("%s\n", path) < 0;
}

static int tell(const char* folder, velo_timeline simulated, velo_timeline measured) {
  velo_timeline_stats planned = VELO_TIMELINE_STATS_INIT, real = VELO_TIMELINE_STATS_INIT;
  TRY(velo_timeline_get_stats(simulated, &planned));
  TRY(velo_timeline_get_stats(measured, &real));
  printf("one rank %.1f ms; %d ranks: simulated %.1f ms, measured %.1f ms\n",
         (double)(took.forward + took.input + took.weight) / 1e3, RANKS, planned.makespan,
         real.makespan / 1e6); /* measured times are in nanoseconds */
  return save(simulated, VELO_TIMELINE_SVG, folder, "simulated.svg") ||
         save(measured, VELO_TIMELINE_SVG, folder, "measured.svg") ||
         save(measured, VELO_TIMELINE_TRACE, folder, "measured.json");
}

int main(int count, char** words) {
  static float expected[STAGES][WIDTH * WIDTH];
  velo_schedule schedule;
  velo_mailbox mailbox;
  velo_timeline simulated;
  int same = 1;
  if (count != 2) return fprintf(stderr, "usage: pipeline_c DIR\n"), 1;
  for (int m = 0; m < MICROBATCHES; ++m) fill(batch[m], ROWS * WIDTH, 1);
  for (int s = 0; s <= LAST; ++s) fill(model[s].weight, WIDTH * WIDTH, 0.075f);

  if (make(&schedule) != 0) return 1;
  TRY(velo_mailbox_create(RANKS, INT64_C(10000000000), &mailbox)); /* no wait exceeds 10 s */
  for (int r = 0; r < RANKS; ++r)
    if (enter(&team[r], r, schedule, mailbox) != 0) return 1;

  for (int i = 0; i < 2; ++i) /* the first time memory is new, and slow */
    if (alone(team[0].stream) != 0) return 1;
  for (int s = 0; s <= LAST; ++s) memcpy(expected[s], model[s].gradient, sizeof expected[s]);
  if (simulate(schedule, &simulated) != 0) return 1;

  for (int i = 0; i < 2; ++i)
    if (together() != 0) return 1;
  for (int s = 0; s <= LAST; ++s)
    same &= memcmp(expected[s], model[s].gradient, sizeof expected[s]) == 0;
  printf("the gradients are %s\n", same ? "those of one rank" : "wrong");
  if (tell(words[1], simulated, team[0].measured) != 0) return 1;

  for (int r = 0; r < RANKS; ++r) {
    velo_timeline_destroy(team[r].measured);
    velo_executor_destroy(team[r].executor);
    velo_context_destroy(team[r].context);
  }
  velo_timeline_destroy(simulated);
  velo_mailbox_destroy(mailbox);
  velo_schedule_destroy(schedule);
  return !same;
}
