/* Makes a database of LevelDB or RocksDB, or sums one up: store make DIR RECORDS, store sum DIR.
 * Built twice: -DSTORE=leveldb -lleveldb, -DSTORE=rocksdb -lrocksdb. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PASTE(a, b) a##_##b
#define NAMED(a, b) PASTE(a, b)
#define CALL(name) NAMED(STORE, name)
#ifdef ROCKS
#include <rocksdb/c.h>
#else
#include <leveldb/c.h>
#endif

static void ok(char *error) {
  if (error) fprintf(stderr, "%s\n", error), exit(1);
}

int main(int argc, char **argv) {
  char *error = NULL;
  if (argc < 3) return 2;
  int is_make = strcmp(argv[1], "make") == 0;
  CALL(options_t) *options = CALL(options_create)();
  CALL(options_set_create_if_missing)(options, is_make);
  CALL(t) *db = CALL(open)(options, argv[2], &error);
  ok(error);
  if (is_make) {
    uint64_t count = strtoull(argv[3], NULL, 10);
    CALL(writeoptions_t) *write = CALL(writeoptions_create)();
    char key[32], value[128];
    /* A permutation, twice: the second time every third is another value, and every fifth is gone. */
    for (int pass = 0; pass < 2; pass++) {
      for (uint64_t n = 0; n < count; n++) {
        uint64_t at = (n * 7919 + 13) % count;
        int len = snprintf(key, sizeof key, "key%012" PRIu64, at);
        if (pass && at % 5 == 0) {
          CALL(delete)(db, write, key, len, &error);
        } else if (!pass || at % 3 == 0) {
          int bytes = snprintf(value, sizeof value, "%d %0*" PRIu64, pass, (int)(at % 90) + 1, at);
          CALL(put)(db, write, key, len, value, bytes, &error);
        }
        ok(error);
      }
    }
    CALL(put)(db, write, "", 0, "of the empty key", 16, &error), ok(error);
    CALL(put)(db, write, "\0\xff", 2, "", 0, &error), ok(error);
    CALL(writeoptions_destroy)(write);
#ifdef ROCKS
    rocksdb_column_family_handle_t *family = rocksdb_create_column_family(db, options, "other", &error);
    ok(error);
    write = rocksdb_writeoptions_create();
    rocksdb_put_cf(db, write, family, "a", 1, "1", 1, &error), ok(error);
    rocksdb_column_family_handle_destroy(family);
#endif
  } else {
    CALL(readoptions_t) *read = CALL(readoptions_create)();
    CALL(iterator_t) *at = CALL(create_iterator)(db, read);
    uint64_t count = 0, hash = 14695981039346656037u;
    for (CALL(iter_seek_to_first)(at); CALL(iter_valid)(at); CALL(iter_next)(at), count++) {
      size_t lens[2];
      const char *parts[2] = {CALL(iter_key)(at, &lens[0]), CALL(iter_value)(at, &lens[1])};
      for (int part = 0; part < 2; part++)
        for (size_t n = 0; n <= lens[part]; n++)
          hash = (hash ^ (n < lens[part] ? (unsigned char)parts[part][n] : 0x100u)) * 1099511628211u;
    }
    CALL(iter_get_error)(at, &error), ok(error);
    CALL(iter_destroy)(at);
    printf("%" PRIu64 " %016" PRIx64 "\n", count, hash);
  }
  CALL(close)(db);
  return 0;
}
