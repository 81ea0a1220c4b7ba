/* Every function of windrow.h, as a program meets them; wrong calls among them. */
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <windrow.h>

#define T(text) windrow_text(text)
static windrow_error *error;

static void ok(bool is_done) {
  if (error || !is_done) fprintf(stderr, "failed: %s\n", windrow_error_message(error)), abort();
}

/* The last call failed so. */
static void failed(windrow_error_kind kind) {
  if (!error) fprintf(stderr, "no error, but one of kind %d was expected\n", kind), abort();
  if (windrow_error_kind_of(error) != kind) fprintf(stderr, "%s\n", windrow_error_message(error)), abort();
  assert(strlen(windrow_error_message(error)) > 5);
  windrow_error_free(error);
  error = NULL;
}

static bool is(windrow_slice bytes, const char *text) {
  return bytes.len == strlen(text) && memcmp(bytes.data, text, bytes.len) == 0;
}

static void expect(windrow_keyspace *ks, windrow_snapshot *snapshot, const char *key, const char *text) {
  windrow_value *value = windrow_get(ks, snapshot, T(key), &error);
  ok(true);
  if (text ? !value || !is(windrow_value_bytes(value), text) : value != NULL)
    fprintf(stderr, "%s is not %s\n", key, text ? text : "absent"), abort();
  windrow_value_free(value);
}

static void scanned(windrow_keyspace *ks, windrow_read_options *options, const char *text) {
  char all[256] = "";
  windrow_cursor *cursor = windrow_cursor_new(ks, options, &error);
  ok(cursor);
  for (bool at = windrow_cursor_seek_first(cursor, &error); at; at = windrow_cursor_next(cursor, &error)) {
    windrow_slice key = windrow_cursor_key(cursor), value = windrow_cursor_value(cursor);
    snprintf(all + strlen(all), sizeof all - strlen(all), "%.*s=%.*s ", (int)key.len, (const char *)key.data,
             (int)value.len, (const char *)value.data);
  }
  ok(windrow_cursor_status(cursor, &error));
  if (strcmp(all, text)) fprintf(stderr, "%s is not %s\n", all, text), abort();
  windrow_cursor_free(cursor);
}

static int backwards(void *state, windrow_slice a, windrow_slice b) {
  (void)state;
  size_t least = a.len < b.len ? a.len : b.len;
  int order = least ? memcmp(b.data, a.data, least) : 0;
  return order ? order : (a.len < b.len) - (a.len > b.len);
}

static int destroyed;
static void destroy(void *state) {
  assert(state == &destroyed);
  __atomic_add_fetch(&destroyed, 1, __ATOMIC_SEQ_CST);
}

static bool longest(void *state, windrow_slice key, const windrow_slice *base, const windrow_slice *operands,
                    size_t count, windrow_output *output) {
  (void)state, (void)key;
  windrow_slice best = base ? *base : operands[0];
  for (size_t at = 0; at < count; at++)
    if (operands[at].len > best.len) best = operands[at];
  windrow_output_set(output, best);
  return best.len < 9;
}

static int shortened(void *state, uint32_t level, windrow_slice key, windrow_slice value, windrow_output *output) {
  (void)state, (void)level;
  if (is(key, "gone")) return WINDROW_FILTER_DECISION_REMOVE;
  if (!is(key, "long")) return WINDROW_FILTER_DECISION_KEEP;
  value.len = 1;
  windrow_output_set(output, value);
  return WINDROW_FILTER_DECISION_CHANGE;
}

static int events;
static void on_event(void *state, const char *event) {
  (void)state;
  if (strstr(event, "flush")) __atomic_add_fetch(&events, 1, __ATOMIC_SEQ_CST);
}

static void named(void *state, const char *name) {
  strcat(strcat(state, name), " ");
}

static bool collected(void *state, windrow_slice key, windrow_slice value) {
  (void)value;
  strncat(strcat(state, " "), key.data, key.len);
  return strlen(state) < 6;
}

static void *writes(void *arg) {
  windrow_keyspace *ks = arg;
  windrow_error *own = NULL;
  for (int n = 0; n < 2000; n++) {
    char key[32];
    snprintf(key, sizeof key, "t%d", n % 100);
    if (!windrow_put(ks, T(key), T("x"), false, &own)) abort();
    windrow_value_free(windrow_get(ks, NULL, T(key), &own));
    if (own) abort();
  }
  return NULL;
}

static void wrong_calls(windrow_db *db, windrow_keyspace *ks) {
  windrow_slice bad = {NULL, 7}, huge = {"x", SIZE_MAX};
  assert(!windrow_put(ks, bad, T("1"), false, &error)), failed(WINDROW_ERROR_KIND_INVALID_ARGUMENT);
  assert(!windrow_put(ks, T("a"), huge, false, &error)), failed(WINDROW_ERROR_KIND_INVALID_ARGUMENT);
  assert(!windrow_get(NULL, NULL, T("a"), &error)), failed(WINDROW_ERROR_KIND_INVALID_ARGUMENT);
  assert(!windrow_open(NULL, NULL, &error)), failed(WINDROW_ERROR_KIND_INVALID_ARGUMENT);
  assert(!windrow_open("/proc/none/db", NULL, &error)), failed(WINDROW_ERROR_KIND_IO);
  assert(!windrow_keyspace_open(db, "\xff", NULL, &error)), failed(WINDROW_ERROR_KIND_INVALID_ARGUMENT);
  assert(!windrow_keyspace_open(db, "", NULL, &error)), failed(WINDROW_ERROR_KIND_INVALID_ARGUMENT);
  assert(!windrow_keyspace_find(db, "nobody", &error)), ok(true);
  windrow_options *options = windrow_options_new();
  assert(!windrow_options_set(options, "memory", "1", &error)), failed(WINDROW_ERROR_KIND_INVALID_ARGUMENT);
  assert(!windrow_options_set(options, "memory_bytes", "lots", &error)), failed(WINDROW_ERROR_KIND_INVALID_ARGUMENT);
  windrow_comparator nameless = {&destroyed, NULL, backwards, true, destroy};
  int before = destroyed;
  assert(!windrow_options_add_comparator(options, &nameless, &error)), failed(WINDROW_ERROR_KIND_INVALID_ARGUMENT);
  assert(destroyed == before + 1);
  windrow_options_free(options);
  /* Without a place for errors, and of NULL. */
  assert(!windrow_put(NULL, T("a"), T("1"), false, NULL));
  windrow_free(NULL), windrow_keyspace_free(NULL), windrow_value_free(NULL), windrow_cursor_free(NULL);
  windrow_batch_free(NULL), windrow_snapshot_free(NULL), windrow_transaction_free(NULL), windrow_ingest_free(NULL);
  windrow_follower_free(NULL), windrow_options_free(NULL), windrow_error_free(NULL), windrow_string_free(NULL);
  assert(!windrow_cursor_next(NULL, NULL) && !windrow_cursor_valid(NULL) && !windrow_cursor_key(NULL).len);
}

static void singles(windrow_keyspace *ks, windrow_snapshot *then) {
  windrow_slice keys[3] = {T("a"), T("none"), T("c")};
  windrow_value *values[3];
  ok(windrow_multi_get(ks, NULL, keys, 3, values, &error));
  assert(is(windrow_value_bytes(values[0]), "1") && !values[1] && is(windrow_value_bytes(values[2]), ""));
  windrow_value_free(values[0]), windrow_value_free(values[2]);
  assert(windrow_contains(ks, NULL, T("a"), &error) && !windrow_contains(ks, then, T("a"), &error));
  assert(windrow_ttl_ms(ks, T("a"), &error) == -1 && windrow_ttl_ms(ks, T("none"), &error) == -2);
  ok(windrow_put_with_ttl(ks, T("t"), T("1"), 60000, false, &error));
  int64_t left = windrow_ttl_ms(ks, T("t"), &error);
  assert(left > 50000 && left <= 60000);
  ok(windrow_delete(ks, T("t"), true, &error));
  windrow_slice old = T("1"), new = T("2");
  assert(windrow_compare_exchange(ks, T("a"), &old, &new, false, &error) == 1);
  assert(windrow_compare_exchange(ks, T("a"), &old, NULL, false, &error) == 0);
  assert(windrow_compare_exchange(ks, T("x"), NULL, &new, false, &error) == 1);
  ok(windrow_single_delete(ks, T("x"), false, &error));
  expect(ks, NULL, "a", "2"), expect(ks, NULL, "x", NULL), expect(ks, then, "a", NULL);
  assert(windrow_count(ks, NULL, NULL, &error) == 3 && windrow_approximate_count(ks, &error) > 0);
  windrow_slice b = T("b");
  assert(windrow_count(ks, &b, NULL, &error) == 2 && windrow_count(ks, NULL, &b, &error) == 1);
  assert(windrow_approximate_bytes(ks, T(""), T("z"), &error) > 0);
  ok(windrow_delete_range(ks, T("a"), T("b"), false, &error));
  expect(ks, NULL, "a", NULL);
  ok(windrow_put(ks, T("a"), T("2"), true, &error));
}

static void cursors(windrow_keyspace *ks, windrow_snapshot *then) {
  scanned(ks, NULL, "a=2 b=1 c= ");
  windrow_slice lower = T("b"), upper = T("c");
  windrow_read_options part = {NULL, &lower, &upper, true}, past = {then, NULL, NULL, false};
  scanned(ks, &part, "b=1 "), scanned(ks, &past, "");
  windrow_cursor *cursor = windrow_cursor_new(ks, NULL, &error);
  assert(!windrow_cursor_valid(cursor) && !windrow_cursor_value(cursor).data);
  assert(windrow_cursor_seek_last(cursor, &error) && is(windrow_cursor_key(cursor), "c"));
  assert(windrow_cursor_prev(cursor, &error) && is(windrow_cursor_key(cursor), "b"));
  assert(windrow_cursor_seek(cursor, T("aa"), &error) && is(windrow_cursor_key(cursor), "b"));
  assert(windrow_cursor_seek_before(cursor, T("b"), &error) && is(windrow_cursor_key(cursor), "a"));
  assert(!windrow_cursor_prev(cursor, &error) && !error);
  ok(windrow_put(ks, T("d"), T("4"), false, &error));
  assert(!windrow_cursor_seek(cursor, T("d"), &error));
  windrow_cursor_refresh(cursor, &error), ok(true);
  assert(windrow_cursor_seek(cursor, T("d"), &error));
  ok(windrow_delete(ks, T("d"), false, &error));
  windrow_cursor_free(cursor);
}

static void transactions(windrow_db *db, windrow_keyspace *ks) {
  windrow_transaction *first = windrow_begin(db, false, 1000, &error);
  windrow_transaction *second = windrow_begin(db, true, 0, &error);
  ok(first && second);
  windrow_value_free(windrow_transaction_get(first, ks, T("a"), false, &error));
  ok(windrow_transaction_put(first, ks, T("a"), T("first"), &error));
  ok(windrow_savepoint(first, &error));
  ok(windrow_transaction_put(first, ks, T("e"), T("5"), &error));
  ok(windrow_transaction_delete_range(first, ks, T("b"), T("c"), &error));
  ok(windrow_rollback_to_savepoint(first, &error));
  assert(!windrow_rollback_to_savepoint(first, &error)), failed(WINDROW_ERROR_KIND_INVALID_ARGUMENT);
  ok(windrow_transaction_put(second, ks, T("a"), T("second"), &error));
  ok(windrow_commit(second, false, &error));
  assert(!windrow_commit(first, false, &error)), failed(WINDROW_ERROR_KIND_CONFLICT);
  assert(!windrow_commit(first, false, &error)), failed(WINDROW_ERROR_KIND_CLOSED);
  assert(!windrow_transaction_put(first, ks, T("a"), T("x"), &error)), failed(WINDROW_ERROR_KIND_CLOSED);
  windrow_transaction_free(first), windrow_transaction_free(second);
  expect(ks, NULL, "a", "second"), expect(ks, NULL, "e", NULL);

  windrow_transaction *third = windrow_begin(db, false, 0, &error);
  ok(windrow_transaction_delete(third, ks, T("a"), &error));
  ok(windrow_transaction_put(third, ks, T("bb"), T("2"), &error));
  ok(windrow_transaction_merge(third, ks, T("bb"), T("3"), &error));
  windrow_value *merged = windrow_transaction_get(third, ks, T("bb"), false, &error);
  assert(is(windrow_value_bytes(merged), "23")), windrow_value_free(merged);
  char keys[64] = "";
  ok(windrow_transaction_scan(third, ks, NULL, NULL, false, keys, collected, &error));
  assert(strcmp(keys, " b bb c") == 0);
  windrow_slice to = T("c");
  strcpy(keys, "");
  ok(windrow_transaction_scan(third, ks, NULL, &to, true, keys, collected, &error));
  assert(strcmp(keys, " bb b") == 0);
  ok(windrow_rollback(third, &error));
  windrow_value *value = windrow_transaction_get(third, ks, T("a"), true, &error);
  assert(is(windrow_value_bytes(value), "second"));
  windrow_value_free(value), windrow_transaction_free(third);
  ok(windrow_put(ks, T("a"), T("2"), false, &error));
}

static void batches(windrow_db *db, windrow_keyspace *ks, windrow_keyspace *other) {
  windrow_batch *batch = windrow_batch_new(), *more = windrow_batch_new();
  ok(windrow_batch_put(batch, ks, T("p"), T("1"), &error));
  ok(windrow_batch_put_with_ttl(batch, other, T("q"), T("2"), 60000, &error));
  ok(windrow_batch_delete(more, ks, T("p"), &error));
  windrow_batch_append(batch, more);
  assert(windrow_batch_len(batch) == 3);
  ok(windrow_write(db, batch, true, &error));
  expect(ks, NULL, "p", NULL), expect(other, NULL, "q", "2");
  windrow_batch_clear(batch);
  ok(windrow_batch_delete_range(batch, other, T("z"), T("a"), &error));
  ok(windrow_batch_single_delete(batch, ks, T("nothing"), &error));
  ok(windrow_batch_merge(batch, other, T("m"), T("longer"), &error));
  ok(windrow_write(db, batch, false, &error));
  expect(other, NULL, "q", NULL), expect(other, NULL, "m", "longer");
  ok(windrow_merge(other, T("m"), T("sh"), false, &error));
  expect(other, NULL, "m", "longer");
  ok(windrow_merge(other, T("m"), T("much too long"), false, &error));
  assert(!windrow_get(other, NULL, T("m"), &error)), failed(WINDROW_ERROR_KIND_MERGE_REFUSED);
  ok(windrow_delete(other, T("m"), false, &error));
  windrow_batch_free(batch), windrow_batch_free(more);
}

static void ingestion(windrow_keyspace *ks) {
  windrow_ingest *ingest = windrow_ingest_new(ks, &error);
  ok(windrow_ingest_put(ingest, T("i1"), T("1"), &error) && windrow_ingest_put(ingest, T("i2"), T("2"), &error));
  ok(windrow_ingest_finish(ingest, &error));
  assert(!windrow_ingest_finish(ingest, &error)), failed(WINDROW_ERROR_KIND_CLOSED);
  windrow_ingest_free(ingest);
  expect(ks, NULL, "i2", "2");
  ingest = windrow_ingest_new(ks, &error);
  ok(windrow_ingest_put(ingest, T("i2"), T("x"), &error));
  assert(!windrow_ingest_put(ingest, T("i1"), T("x"), &error)), failed(WINDROW_ERROR_KIND_INVALID_ARGUMENT);
  windrow_ingest_free(ingest);
  expect(ks, NULL, "i2", "2");
  ok(windrow_delete_range(ks, T("i"), T("j"), false, &error));
}

static void upkeep(windrow_db *db, windrow_keyspace *ks, const char *dir) {
  char copy[4096];
  snprintf(copy, sizeof copy, "%s-copy", dir);
  ok(windrow_put(ks, T("gone"), T("1"), false, &error) && windrow_put(ks, T("long"), T("123"), false, &error));
  ok(windrow_sync(db, &error) && windrow_flush(db, &error) && windrow_compact(db, &error));
  expect(ks, NULL, "gone", NULL), expect(ks, NULL, "long", "1");
  ok(windrow_delete(ks, T("long"), false, &error));
  windrow_slice a = T("a"), z = T("z");
  ok(windrow_keyspace_flush(ks, &error) && windrow_keyspace_compact(ks, &a, &z, &error) && windrow_wait_idle(db, &error));
  uint64_t problems = 7;
  ok(windrow_verify(db, &problems, &error) && windrow_is_writable(db, &error) && windrow_resume(db, &error));
  assert(problems == 0 && events > 0);
  char *json = windrow_stats_json(db), *text = windrow_stats_text(db), *path = windrow_path(db);
  assert(strstr(json, "\"keyspaces\"") && strstr(text, "level") && strstr(path, dir));
  windrow_string_free(json), windrow_string_free(text), windrow_string_free(path);
  ok(windrow_checkpoint(db, copy, &error));

  assert(!windrow_open(copy, NULL, &error)), failed(WINDROW_ERROR_KIND_INVALID_ARGUMENT); /* its comparator is unknown */
}

static void followers(const char *dir) {
  char copy[4096];
  snprintf(copy, sizeof copy, "%s-of-follower", dir);
  windrow_db *db = windrow_open(dir, NULL, &error);
  windrow_keyspace *ks = windrow_default_keyspace(db);
  ok(windrow_put(ks, T("a"), T("1"), false, &error));
  windrow_follower *follower = windrow_follower_open(dir, NULL, &error);
  ok(follower);
  ok(windrow_put(ks, T("a"), T("2"), false, &error));
  windrow_db *before = windrow_follower_db(follower);
  assert(windrow_follower_refresh(follower, &error) == 1 && windrow_follower_refresh(follower, &error) == 0);
  windrow_db *after = windrow_follower_db(follower);
  windrow_keyspace *old = windrow_default_keyspace(before), *new = windrow_default_keyspace(after);
  expect(old, NULL, "a", "1"), expect(new, NULL, "a", "2");
  assert(!windrow_put(new, T("a"), T("3"), false, &error)), failed(WINDROW_ERROR_KIND_READ_ONLY);
  windrow_follower_refresh_every(follower, 10), windrow_follower_refresh_every(follower, 0);
  ok(windrow_follower_checkpoint(follower, copy, &error));
  windrow_keyspace_free(old), windrow_keyspace_free(new), windrow_free(before), windrow_free(after);
  windrow_follower_free(follower), windrow_keyspace_free(ks);
  ok(windrow_close(db, &error));
  windrow_free(db);
  ok(windrow_destroy(copy, &error));
  char *report = windrow_repair(dir, NULL, &error);
  ok(report), assert(strstr(report, "\"lost_something\":false"));
  windrow_string_free(report);
  ok(windrow_destroy(dir, &error));
}

static void after_the_end(windrow_db *db, windrow_keyspace *ks, windrow_snapshot *then) {
  windrow_cursor *cursor = windrow_cursor_new(ks, NULL, &error);
  windrow_batch *batch = windrow_batch_new();
  windrow_transaction *transaction = windrow_begin(db, false, 0, &error);
  ok(windrow_batch_put(batch, ks, T("a"), T("1"), &error));
  pid_t child = fork();
  if (child == 0) {
    windrow_error *own = NULL;
    bool refused = !windrow_put(ks, T("a"), T("child"), false, &own) && windrow_error_kind_of(own) == WINDROW_ERROR_KIND_CLOSED;
    windrow_error_free(own);
    refused = refused && !windrow_get(ks, NULL, T("a"), &own) && own;
    windrow_string_free(windrow_stats_json(db));
    windrow_close(db, NULL), windrow_free(db);
    if (refused) raise(SIGKILL); /* so that nobody looks for what a child leaves behind */
    _exit(1);
  }
  int status;
  waitpid(child, &status, 0);
  assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  expect(ks, NULL, "a", "2");
  ok(windrow_close(db, &error) && windrow_close(db, &error));
  assert(!windrow_put(ks, T("a"), T("1"), false, &error)), failed(WINDROW_ERROR_KIND_CLOSED);
  assert(!windrow_get(ks, NULL, T("a"), &error)), failed(WINDROW_ERROR_KIND_CLOSED);
  assert(!windrow_write(db, batch, false, &error)), failed(WINDROW_ERROR_KIND_CLOSED);
  assert(!windrow_begin(db, false, 0, &error)), failed(WINDROW_ERROR_KIND_CLOSED);
  assert(!windrow_flush(db, &error)), failed(WINDROW_ERROR_KIND_CLOSED);
  assert(!windrow_ingest_new(ks, &error)), failed(WINDROW_ERROR_KIND_CLOSED);
  assert(windrow_cursor_seek_first(cursor, &error)), ok(true); /* what is open goes on reading */
  assert(!windrow_transaction_put(transaction, ks, T("a"), T("1"), &error) ||
         !windrow_commit(transaction, false, &error)), failed(WINDROW_ERROR_KIND_CLOSED);
  windrow_free(db); /* in any order */
  windrow_keyspace_free(ks), windrow_batch_free(batch), windrow_transaction_free(transaction);
  assert(windrow_cursor_next(cursor, &error));
  windrow_snapshot_free(then), windrow_cursor_free(cursor);
}

int main(int argc, char **argv) {
  assert(argc == 2 && windrow_version()[0] != 0);
  windrow_options *options = windrow_options_new();
  ok(windrow_options_set(options, "memory_bytes", "16MiB", &error));
  windrow_options_create_if_missing(options, false);
  assert(!windrow_open(argv[1], options, &error)), failed(WINDROW_ERROR_KIND_INVALID_ARGUMENT);
  windrow_options_create_if_missing(options, true);
  windrow_comparator comparator = {&destroyed, "backwards", backwards, true, destroy};
  windrow_merge_operator operator = {&destroyed, "longest", longest, NULL, destroy};
  windrow_compaction_filter filter = {&destroyed, "shortened", shortened, destroy};
  ok(windrow_options_add_comparator(options, &comparator, &error));
  ok(windrow_options_add_merge_operator(options, &operator, &error));
  ok(windrow_options_add_compaction_filter(options, "default", &filter, &error));
  ok(windrow_options_set_listener(options, &destroyed, on_event, destroy, &error));
  windrow_keyspace_options by_default = {NULL, "append", NULL, NULL, 0};
  ok(windrow_options_default_keyspace(options, &by_default, &error));
  windrow_db *db = windrow_open(argv[1], options, &error);
  ok(db);
  assert(!windrow_open(argv[1], options, &error)), failed(WINDROW_ERROR_KIND_BUSY);
  windrow_options_error_if_exists(options, true);
  windrow_options_read_only(options, false);
  windrow_options_free(options);
  windrow_keyspace *ks = windrow_default_keyspace(db);
  windrow_keyspace_options of = {"backwards", "longest", "leveled", "none", 0};
  windrow_keyspace *other = windrow_keyspace_open(db, "other", &of, &error);
  ok(other);
  windrow_snapshot *then = windrow_snapshot_new(db);
  ok(windrow_put(ks, T("a"), T("1"), false, &error) && windrow_put(ks, T("b"), T("1"), true, &error));
  ok(windrow_put(ks, T("c"), windrow_bytes(NULL, 0), false, &error));

  wrong_calls(db, ks);
  singles(ks, then);
  cursors(ks, then);
  transactions(db, ks);
  batches(db, ks, other);
  ingestion(ks);
  ok(windrow_put(other, T("1"), T(""), false, &error) && windrow_put(other, T("2"), T(""), false, &error));
  scanned(other, NULL, "2= 1= ");
  char names[64] = "", *policy = windrow_keyspace_policy(other), *name = windrow_keyspace_name(other);
  windrow_keyspaces(db, names, named);
  assert(strcmp(names, "default other ") == 0 && strstr(policy, "leveling") && strcmp(name, "other") == 0);
  windrow_string_free(policy), windrow_string_free(name);
  ok(windrow_keyspace_set_policy(other, "windrow", &error));
  assert(!windrow_keyspace_set_policy(other, "nonsense", &error)), failed(WINDROW_ERROR_KIND_INVALID_ARGUMENT);
  pthread_t threads[16];
  for (int n = 0; n < 16; n++) pthread_create(&threads[n], NULL, writes, other);
  for (int n = 0; n < 16; n++) pthread_join(threads[n], NULL);
  assert(windrow_count(other, NULL, NULL, &error) == 102);
  upkeep(db, ks, argv[1]);
  windrow_keyspace *found = windrow_keyspace_find(db, "other", &error);
  ok(found && windrow_keyspace_drop(db, "other", &error));
  assert(!windrow_get(found, NULL, T("1"), &error)), failed(WINDROW_ERROR_KIND_CLOSED);
  windrow_keyspace_free(found), windrow_keyspace_free(other);
  after_the_end(db, ks, then);
  char second[4096];
  snprintf(second, sizeof second, "%s-second", argv[1]);
  followers(second);
  ok(windrow_destroy(argv[1], &error));
  assert(destroyed == 5);
  puts("every function was called");
  return 0;
}
