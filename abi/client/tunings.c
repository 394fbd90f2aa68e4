/* This part: tunings, of a job small enough to know what comes of it. */
#include <stddef.h>

#include "client.h"

/* Two accelerators, one layer: two parts of the tensors, or two of the batch; a pipeline has no
 * layer for its second rank. */
static const char config[] =
    "{\"model\": {\"layers\": 1, \"hidden\": 64, \"heads\": 2, \"ffn_hidden\": 128, "
    "\"vocabulary\": 100},"
    " \"training\": {\"global_batch\": 4, \"sequence\": 32}, \"accelerators\": 2,"
    " \"search\": {\"tp\": [1, 2], \"cp\": [1], \"pp\": [1, 2], \"micro_batch\": [1],"
    " \"recompute\": [\"none\"], \"kind\": [\"1f1b\"], \"split\": [\"even\"]}}";
static const char profile[] = "{\"memory_gib\": 4, \"memory_fraction\": 1}";

/* Eight accelerators: two parts of the tensors, four of each sequence, four experts, and one way of
 * each cut. A pipeline of four ranks would need more accelerators. */
static const char ways[] =
    "{\"model\": {\"layers\": 1, \"hidden\": 64, \"heads\": 4, \"ffn_hidden\": 128, "
    "\"vocabulary\": 100, \"moe\": {\"experts\": 4, \"active\": 1, \"hidden\": 64}},"
    " \"training\": {\"global_batch\": 4, \"sequence\": 32}, \"accelerators\": 8,"
    " \"search\": {\"tp\": [2], \"cp\": [4], \"pp\": [1, 4], \"ep\": [1], \"micro_batch\": [1],"
    " \"recompute\": [\"none\"], \"kind\": [\"1f1b\"], \"split\": [\"even\"],"
    " \"cp_algorithm\": [\"hybrid\"], \"tp_slices\": [2],"
    " \"token_rearrange\": [\"one_hot\"]}}";

static void client_ways(void) {
  velo_tune_desc desc = VELO_TUNE_DESC_INIT;
  velo_tuning_plan plan = VELO_TUNING_PLAN_INIT;
  velo_tuning_rejection rejection = VELO_TUNING_REJECTION_INIT;
  velo_tuning tuning = NULL;
  desc.config = ways;
  desc.config_length = sizeof ways - 1;
  WORKS(velo_tune(&desc, &tuning));
  WORKS(velo_tuning_get_plan(tuning, 0, &plan));
  EXPECT(plan.layout.tp == 2 && plan.layout.cp == 4 && plan.tp_slices == 2);
  EXPECT(plan.cp_algorithm == VELO_SEQUENCE_HYBRID && plan.cp_ulysses == 2);
  EXPECT(plan.token_rearrange == VELO_TUNING_REARRANGE_ONE_HOT);
  EXPECT(plan.tp_x == 0 && plan.sequence_splits == 0);
  EXPECT(plan.sequence_parallel == 1 && plan.zero == 1);
  WORKS(velo_tuning_get_rejection(tuning, 0, &rejection));
  EXPECT(rejection.code == VELO_TUNING_REASON_RANKS && rejection.layout.pp == 4);
  EXPECT(rejection.cp_algorithm == -1 && rejection.cp_ulysses == 0 && rejection.tp_slices == 0);
  EXPECT(rejection.token_rearrange == VELO_TUNING_REARRANGE_INDEX);
  EXPECT(rejection.sequence_parallel == 1 && rejection.zero == -1);

  /* A caller whose struct ends before these fields. */
  plan.struct_size = offsetof(velo_tuning_plan, cp_algorithm);
  plan.cp_algorithm = plan.token_rearrange = 77;
  WORKS(velo_tuning_get_plan(tuning, 0, &plan));
  EXPECT(plan.cp_algorithm == 77 && plan.token_rearrange == 77 && plan.utilization > 0);
  rejection.struct_size = offsetof(velo_tuning_rejection, cp_algorithm);
  rejection.cp_algorithm = 77;
  WORKS(velo_tuning_get_rejection(tuning, 0, &rejection));
  EXPECT(rejection.cp_algorithm == 77);
  velo_tuning_destroy(tuning);
}

/* Four accelerators: a pipeline of two whose sequences are split, or of matrices cut both ways. */
static void client_cuts(void) {
  static const char cuts[] =
      "{\"model\": {\"layers\": 2, \"hidden\": 64, \"heads\": 4, \"ffn_hidden\": 128, "
      "\"vocabulary\": 100}, \"training\": {\"global_batch\": 4, \"sequence\": 32}, "
      "\"accelerators\": 4, \"search\": {\"tp\": [2], \"tp_x\": [1, 2], \"cp\": [1], \"pp\": [2], "
      "\"dp\": [1], \"micro_batch\": [1], \"recompute\": [\"none\"], \"kind\": [\"seq1f1b\"], "
      "\"sequence_splits\": [4], \"split\": [\"even\"], \"cp_algorithm\": [\"ring\"]}}";
  velo_tune_desc desc = VELO_TUNE_DESC_INIT;
  velo_tuning_plan plan = VELO_TUNING_PLAN_INIT;
  velo_tuning_rejection rejection = VELO_TUNING_REJECTION_INIT;
  velo_tuning tuning = NULL;
  desc.config = cuts;
  desc.config_length = sizeof cuts - 1;
  WORKS(velo_tune(&desc, &tuning));
  WORKS(velo_tuning_get_plan(tuning, 0, &plan));
  EXPECT(plan.tp_x == 2 && plan.sequence_splits == 4 && plan.cp_algorithm == -1);
  EXPECT(plan.layout.kind == VELO_SCHEDULE_SEQ1F1B);
  WORKS(velo_tuning_get_rejection(tuning, 0, &rejection));
  EXPECT(rejection.code == VELO_TUNING_REASON_SCHEDULE && rejection.tp_x == 1);
  EXPECT(rejection.cp_algorithm == VELO_SEQUENCE_RING && rejection.sequence_splits == 0);

  /* A caller whose struct ends before these fields. */
  plan.struct_size = offsetof(velo_tuning_plan, tp_x);
  plan.tp_x = plan.sequence_splits = 77;
  WORKS(velo_tuning_get_plan(tuning, 0, &plan));
  EXPECT(plan.tp_x == 77 && plan.sequence_splits == 77);
  velo_tuning_destroy(tuning);
}

void client_tunings(void) {
  velo_tune_desc desc = VELO_TUNE_DESC_INIT;
  velo_tuning_info info = VELO_TUNING_INFO_INIT;
  velo_tuning_plan plan = VELO_TUNING_PLAN_INIT;
  velo_tuning_memory memory = VELO_TUNING_MEMORY_INIT;
  velo_tuning_rejection rejection = VELO_TUNING_REJECTION_INIT;
  velo_tuning tuning = NULL;
  uint64_t needed = 0;
  desc.config = config;
  desc.config_length = sizeof config; /* with its zero */
  REFUSES(velo_tune(&desc, &tuning), VELO_ERR_PARSE);
  desc.config_length = sizeof config - 1;
  desc.keep = -1;
  REFUSES(velo_tune(&desc, &tuning), VELO_ERR_ARGUMENT);
  desc.keep = 5;
  desc.profile = profile;
  desc.profile_length = sizeof profile - 1;
  WORKS(velo_tune(&desc, &tuning));
  WORKS(velo_tuning_get_info(tuning, &info));
  EXPECT(info.accelerators == 2 && info.plans == 2 && info.rejections == 2);
  EXPECT(info.candidates == 4 && info.nearest == -1 && info.memory == INT64_C(4) << 30);
  WORKS(velo_tuning_get_plan(tuning, 0, &plan));
  EXPECT(plan.layout.tp * plan.layout.dp == 2 && plan.layout.pp == 1 && plan.step_seconds > 0);
  EXPECT(plan.cp_algorithm == -1 && plan.tp_slices == (plan.layout.tp == 2));
  EXPECT(plan.layout.microbatches == 4 / plan.layout.dp && plan.bubble == 0);
  WORKS(velo_tuning_get_memory(tuning, 0, 0, &memory));
  EXPECT(memory.layers == 1 && memory.gradients == 2 * memory.parameters);
  EXPECT(memory.total == plan.memory && memory.workspace >= INT64_C(2) << 30);
  REFUSES(velo_tuning_get_memory(tuning, 0, 1, &memory), VELO_ERR_ARGUMENT);
  REFUSES(velo_tuning_get_plan(tuning, 2, &plan), VELO_ERR_ARGUMENT);
  WORKS(velo_tuning_get_rejection(tuning, 0, &rejection));
  EXPECT(rejection.code == VELO_TUNING_REASON_LAYERS && rejection.layout.pp == 2);
  REFUSES(velo_tuning_get_rejection(tuning, -1, &rejection), VELO_ERR_ARGUMENT);
  WORKS(velo_tuning_write(tuning, VELO_TUNING_REJECTED, NULL, 0, &needed));
  EXPECT(needed > 100);
  REFUSES(velo_tuning_write(tuning, -1, NULL, 0, &needed), VELO_ERR_ARGUMENT);
  velo_tuning_destroy(tuning);
  EXPECT(velo_tuning_get_info(tuning, &info) == VELO_ERR_HANDLE);
  client_ways();
  client_cuts();
}
