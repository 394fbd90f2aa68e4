/* The client's part for schedules and timelines: orders, times and violations that are known. */
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
  char text[256];
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
  WORKS(velo_schedule_simulate(schedule, &costs, &timeline));
  velo_schedule_destroy(schedule); /* the timeline stays */
  EXPECT(velo_schedule_get_info(schedule, &info) == VELO_ERR_HANDLE);
  WORKS(velo_timeline_get_stats(timeline, &stats));
  EXPECT(stats.makespan == 7.5 && stats.work == 5 && stats.beta == 2.5 && stats.sigma == 2.5);
  WORKS(velo_timeline_get_rank(timeline, 0, &rank));
  EXPECT(rank.last == 7.5 && rank.work == 5 && rank.peak_activations == 2);
  WORKS(velo_timeline_write(timeline, VELO_TIMELINE_SUMMARY_JSON, text, sizeof text, NULL));
  EXPECT(strstr(text, "\"makespan\": 7.5") != NULL);
  velo_timeline_destroy(timeline);
  EXPECT(velo_timeline_get_stats(timeline, &stats) == VELO_ERR_HANDLE);
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

void client_schedules(void) {
  generated();
  read_from_text();
}
