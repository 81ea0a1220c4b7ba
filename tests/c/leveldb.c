/* LevelDB's interface on Windrow, where c_test does not go: wrong calls, a batch that is its own source, properties,
 * what is read after the database was closed. */
#include <assert.h>
#include <leveldb/c.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *error;

static void ok(void) {
  if (error) fprintf(stderr, "failed: %s\n", error), abort();
}

static void failed(const char *with) {
  if (!error || !strstr(error, with)) fprintf(stderr, "%s, not %s\n", error ? error : "no error", with), abort();
}

static void count(void *state, const char *k, size_t klen, const char *v, size_t vlen) {
  (void)k, (void)v, (void)klen, (void)vlen, ++*(int *)state;
}

static void deleted(void *state, const char *k, size_t klen) { count(state, k, klen, NULL, 0); }

int main(int argc, char **argv) {
  assert(argc == 2);
  leveldb_options_t *options = leveldb_options_create();
  leveldb_readoptions_t *read = leveldb_readoptions_create();
  leveldb_writeoptions_t *write = leveldb_writeoptions_create();
  size_t len = 7;
  assert(!leveldb_open(options, argv[1], &error)), failed("invalid argument");
  /* A second error takes the place of the first. */
  assert(!leveldb_open(options, NULL, &error)), failed("NULL");
  leveldb_free(error), error = NULL;
  leveldb_destroy_db(options, argv[1], &error), ok();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_t *db = leveldb_open(options, argv[1], &error);
  ok();
  assert(!leveldb_open(options, argv[1], &error)), failed("busy");
  leveldb_put(db, write, NULL, 3, "1", 1, &error), failed("there can be no 3 bytes");
  leveldb_put(db, write, "a", SIZE_MAX, "1", 1, &error), failed("bytes at");
  assert(!leveldb_get(db, read, NULL, 9, &len, &error) && len == 0), failed("there can be no 9 bytes");
  leveldb_put(NULL, write, "a", 1, "1", 1, &error), failed("NULL");
  leveldb_free(error), error = NULL;

  leveldb_writebatch_t *batch = leveldb_writebatch_create();
  leveldb_writebatch_put(batch, "a", 1, "", 0), leveldb_writebatch_delete(batch, "b", 1);
  leveldb_writebatch_append(batch, batch);
  int operations = 0;
  leveldb_writebatch_iterate(batch, &operations, count, deleted);
  assert(operations == 4);
  leveldb_write(db, write, batch, &error), ok();
  leveldb_writebatch_put(batch, NULL, 2, "x", 1);
  leveldb_write(db, write, batch, &error), failed("there can be no 2 bytes");
  leveldb_free(error), error = NULL;
  leveldb_writebatch_clear(batch);
  leveldb_write(db, write, batch, &error), ok();
  char *value = leveldb_get(db, read, "a", 1, &len, &error);
  ok(), assert(value && len == 0);
  leveldb_free(value);

  const char *names[] = {"leveldb.stats", "leveldb.sstables", "leveldb.approximate-memory-usage", "leveldb.num-files-at-level0"};
  for (size_t at = 0; at < sizeof names / sizeof *names; at++) {
    char *property = leveldb_property_value(db, names[at]);
    assert(property && *property), leveldb_free(property);
  }
  assert(!leveldb_property_value(db, "leveldb.num-files-at-level") && !leveldb_property_value(db, NULL));

  const leveldb_snapshot_t *snapshot = leveldb_create_snapshot(db);
  leveldb_iterator_t *iterator = leveldb_create_iterator(db, read);
  leveldb_iter_next(iterator), leveldb_iter_prev(iterator);
  assert(!leveldb_iter_valid(iterator) && !leveldb_iter_key(iterator, &len) && len == 0);
  leveldb_release_snapshot(db, snapshot);
  leveldb_close(db);
  leveldb_iter_seek_to_first(iterator);
  assert(leveldb_iter_valid(iterator) && *leveldb_iter_key(iterator, &len) == 'a');
  leveldb_iter_get_error(iterator, &error), ok();
  leveldb_iter_destroy(iterator), leveldb_writebatch_destroy(batch);
  leveldb_destroy_db(options, argv[1], &error), ok();
  leveldb_options_destroy(options), leveldb_readoptions_destroy(read), leveldb_writeoptions_destroy(write);
  puts("wrong calls are errors");
  return 0;
}
