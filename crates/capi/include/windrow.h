/* Windrow: an embedded, ordered key-value store. How to begin: docs/guide/c.md.
 * Made by cbindgen from the crate windrow-capi: change it there. */

#ifndef WINDROW_H
#define WINDROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Kinds of errors, by the reaction that they call for. Numbers never change; later versions may have more.
typedef enum {
  // Windrow contradicts itself, or code of yours that it called failed: a defect. Report it.
  WINDROW_ERROR_KIND_INTERNAL = 1,
  // Bytes on disk differ from those that were written: windrow_verify, then windrow_repair or a backup.
  WINDROW_ERROR_KIND_CORRUPTION = 2,
  // The operating system refused something.
  WINDROW_ERROR_KIND_IO = 3,
  // The device is full: make room and try again; windrow_resume if writing is off.
  WINDROW_ERROR_KIND_NO_SPACE = 4,
  // The call was wrong: change it.
  WINDROW_ERROR_KIND_INVALID_ARGUMENT = 5,
  // The data needs something that this build does not have.
  WINDROW_ERROR_KIND_NOT_SUPPORTED = 6,
  // The database was closed or the keyspace dropped, or this is a forked child.
  WINDROW_ERROR_KIND_CLOSED = 7,
  // Writing is off: windrow_resume or opening again turns it on.
  WINDROW_ERROR_KIND_READ_ONLY = 8,
  // Another process, thread or transaction holds it: try later.
  WINDROW_ERROR_KIND_BUSY = 9,
  // Whether the write took effect is not known until writing is on again.
  WINDROW_ERROR_KIND_OUTCOME_UNKNOWN = 10,
  // Another write changed a key that the transaction read: run the transaction again.
  WINDROW_ERROR_KIND_CONFLICT = 11,
  // The merge operator does not take the value: put or delete the key.
  WINDROW_ERROR_KIND_MERGE_REFUSED = 12,
} windrow_error_kind;

// The decision of a compaction filter on a value.
typedef enum {
  // It stays.
  WINDROW_FILTER_DECISION_KEEP = 0,
  // The key is absent from here on.
  WINDROW_FILTER_DECISION_REMOVE = 1,
  // The value becomes the one that `output` was set to.
  WINDROW_FILTER_DECISION_CHANGE = 2,
} windrow_filter_decision;

// A batch. Used by one thread at a time. It holds copies of keys and values.
typedef struct windrow_batch windrow_batch;

// A place among the entries of a keyspace, or none. It shows the entries as of the moment at which it was made; later
// writes do not change it. Used by one thread at a time.
typedef struct windrow_cursor windrow_cursor;

// A database that is open. Any number of threads may use it at once.
typedef struct windrow_db windrow_db;

// An error: a kind, and a sentence that names the failure, its place and the remedy.
//
// A function that can fail has `windrow_error **error` as its last argument, which may be NULL. The function sets it
// to NULL on success, and else to an error that the caller frees.
typedef struct windrow_error windrow_error;

// A database of another process, as of the last refresh. Any number of threads may use it at once.
typedef struct windrow_follower windrow_follower;

// An ingestion: entries for a keyspace, added in the order of their keys. Used by one thread at a
// time.
typedef struct windrow_ingest windrow_ingest;

// An ordered map from keys to values. The handle keeps its database open until it is freed or the database is closed.
// Any number of threads may use it at once.
typedef struct windrow_keyspace windrow_keyspace;

// How a database is opened. Used by one thread at a time.
typedef struct windrow_options windrow_options;

// The place where a caller's function leaves a value.
typedef struct windrow_output windrow_output;

// All keyspaces as of one moment. Any number of threads may use it at once.
typedef struct windrow_snapshot windrow_snapshot;

// A transaction: it reads one snapshot and its own writes, and its writes take effect all at once, or not at all. Used
// by one thread at a time.
typedef struct windrow_transaction windrow_transaction;

// A value that was read, without a copy of its bytes.
typedef struct windrow_value windrow_value;

// Bytes: a key, a value, a bound. `data` may be NULL if `len` is 0.
typedef struct {
  // The address of the first byte.
  const void *data;
  // The number of bytes.
  size_t len;
} windrow_slice;

// How a cursor reads. Zeros, with `fill_cache` true, mean all entries of the newest state.
typedef struct {
  // The snapshot that is read; NULL: the newest state when the cursor is made.
  const windrow_snapshot *snapshot;
  // The first key that may be returned; NULL: from the first key.
  const windrow_slice *lower;
  // The bound before which the cursor ends; NULL: to the last key.
  const windrow_slice *upper;
  // Whether the blocks that are read enter the cache: false for one pass over much data.
  bool fill_cache;
} windrow_read_options;

// How a keyspace is created or opened. NULL and 0 mean the stored option, or the default for a new keyspace. For an
// existing keyspace, order and operator must be those that it was created with; the other options are stored with it
// from now on.
typedef struct {
  // The name of a registered order; NULL: by bytes.
  const char *comparator;
  // The name of a registered merge operator, or `add` (8 bytes, little-endian), `append`, `max`; NULL: none.
  const char *merge_operator;
  // The keyspace's own merge policy, as the option `preset`; NULL: the database's.
  const char *policy;
  // The keyspace's own codecs, as the option `compression`; NULL: the database's.
  const char *compression;
  // The number of milliseconds after which a value expires, unless its put says otherwise; 0: never.
  uint64_t ttl_ms;
} windrow_keyspace_options;

// An order of keys. Its functions are called from any thread, several at once, and must return.
typedef struct {
  // The first argument of its functions.
  void *state;
  // Its identity, which is stored with a keyspace: another order has another name.
  const char *name;
  // Less than 0, 0, or more than 0, as `a` is before, equal to, or after `b`. A total order.
  int (*compare)(void *state, windrow_slice a, windrow_slice b);
  // Whether 0 means equal bytes. If not, tables get no filters.
  bool equal_means_same_bytes;
  // Called once, when `state` is not needed any more. May be NULL.
  void (*destroy)(void *state);
} windrow_comparator;

// Combines the operands merged into a key with its value. Its functions are called from any thread, several at once,
// must return, and must have the same result for the same arguments.
typedef struct {
  // The first argument of its functions.
  void *state;
  // Its identity, which is stored with a keyspace.
  const char *name;
  // Sets `output` to the value that `operands`, oldest first, make of `base` (NULL: the key is absent), and
  // returns true; false if they do not fit.
  bool (*full_merge)(void *state,
                     windrow_slice key,
                     const windrow_slice *base,
                     const windrow_slice *operands,
                     size_t count,
                     windrow_output *output);
  // Sets `output` to one operand with the effect of all `operands`, and returns true; false to keep them all. May be
  // NULL.
  bool (*partial_merge)(void *state,
                        windrow_slice key,
                        const windrow_slice *operands,
                        size_t count,
                        windrow_output *output);
  // Called once, when `state` is not needed any more. May be NULL.
  void (*destroy)(void *state);
} windrow_merge_operator;

// Decides on the values that merges write. Its function is called from background threads, and must return.
typedef struct {
  // The first argument of its function.
  void *state;
  // Its name in messages.
  const char *name;
  // A windrow_filter_decision; any other number keeps the value.
  int (*filter)(void *state,
                uint32_t level,
                windrow_slice key,
                windrow_slice value,
                windrow_output *output);
  // Called once, when `state` is not needed any more. May be NULL.
  void (*destroy)(void *state);
} windrow_compaction_filter;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// An empty batch.
windrow_batch *windrow_batch_new(void);

// Frees a batch. Its writes stay.
void windrow_batch_free(windrow_batch *batch);

// Empties a batch, and keeps its memory.
void windrow_batch_clear(windrow_batch *batch);

// The number of operations in a batch.
size_t windrow_batch_len(const windrow_batch *batch);

// Adds the operations of another batch.
void windrow_batch_append(windrow_batch *batch, const windrow_batch *other);

// Adds a put.
bool windrow_batch_put(windrow_batch *batch,
                       const windrow_keyspace *keyspace,
                       windrow_slice key,
                       windrow_slice value,
                       windrow_error **error);

// Adds a put of a value that expires `ttl_ms` milliseconds from now.
bool windrow_batch_put_with_ttl(windrow_batch *batch,
                                const windrow_keyspace *keyspace,
                                windrow_slice key,
                                windrow_slice value,
                                uint64_t ttl_ms,
                                windrow_error **error);

// Adds a delete.
bool windrow_batch_delete(windrow_batch *batch,
                          const windrow_keyspace *keyspace,
                          windrow_slice key,
                          windrow_error **error);

// Adds a single delete (windrow_single_delete).
bool windrow_batch_single_delete(windrow_batch *batch,
                                 const windrow_keyspace *keyspace,
                                 windrow_slice key,
                                 windrow_error **error);

// Adds a delete of all keys in `from..to`.
bool windrow_batch_delete_range(windrow_batch *batch,
                                const windrow_keyspace *keyspace,
                                windrow_slice from,
                                windrow_slice to,
                                windrow_error **error);

// Adds a merge.
bool windrow_batch_merge(windrow_batch *batch,
                         const windrow_keyspace *keyspace,
                         windrow_slice key,
                         windrow_slice operand,
                         windrow_error **error);

// Writes all of the batch or nothing of it. `sync`: it is on the device when the call returns. The batch keeps its
// operations, and may be written again or cleared.
bool windrow_write(const windrow_db *db,
                   windrow_batch *batch,
                   bool sync,
                   windrow_error **error);

// The bytes of a value, valid until the value is freed. For NULL: no bytes.
windrow_slice windrow_value_bytes(const windrow_value *value);

// Frees a value.
void windrow_value_free(windrow_value *value);

// Frees a text that a function of this library returned.
void windrow_string_free(char *text);

// Makes `bytes` the value. They are copied.
void windrow_output_set(windrow_output *output, windrow_slice bytes);

// Makes a cursor, at no entry yet. `options` may be NULL.
windrow_cursor *windrow_cursor_new(const windrow_keyspace *keyspace,
                                   const windrow_read_options *options,
                                   windrow_error **error);

// Frees a cursor.
void windrow_cursor_free(windrow_cursor *cursor);

// Goes to the first entry. True if there is one; false at an end, and on an error.
bool windrow_cursor_seek_first(windrow_cursor *cursor, windrow_error **error);

// Goes to the last entry.
bool windrow_cursor_seek_last(windrow_cursor *cursor, windrow_error **error);

// Goes to the first entry whose key is `key` or after it.
bool windrow_cursor_seek(windrow_cursor *cursor, windrow_slice key, windrow_error **error);

// Goes to the last entry whose key is before `key`.
bool windrow_cursor_seek_before(windrow_cursor *cursor, windrow_slice key, windrow_error **error);

// Goes to the next entry.
bool windrow_cursor_next(windrow_cursor *cursor, windrow_error **error);

// Goes to the entry before.
bool windrow_cursor_prev(windrow_cursor *cursor, windrow_error **error);

// Whether the cursor is at an entry.
bool windrow_cursor_valid(const windrow_cursor *cursor);

// The key of the entry, valid until the cursor is moved or freed; no bytes where it is at none.
windrow_slice windrow_cursor_key(const windrow_cursor *cursor);

// The value of the entry, valid until the cursor is moved or freed; no bytes where it is at none.
windrow_slice windrow_cursor_value(const windrow_cursor *cursor);

// Shows the newest state from now on, at the same key or the one after it; clears an error.
bool windrow_cursor_refresh(windrow_cursor *cursor, windrow_error **error);

// Whether the last move failed. The error stays with the cursor.
bool windrow_cursor_status(const windrow_cursor *cursor, windrow_error **error);

// The version of the library, like "0.1.0". Not to be freed.
const char *windrow_version(void);

// Opens the database in a directory, which is created if it does not exist. `options` may be NULL. To be closed by
// windrow_close and freed by windrow_free.
windrow_db *windrow_open(const char *path,
                         const windrow_options *options,
                         windrow_error **error);

// Writes the memtables to tables, and closes the database: the directory is free. All handles stay valid until they
// are freed. Their calls fail, except that cursors and snapshots go on reading. A second close does nothing.
bool windrow_close(const windrow_db *db,
                   windrow_error **error);

// Frees the handle. The last handle of a database that was not closed closes it.
void windrow_free(windrow_db *db);

// The database's directory, to be freed by windrow_string_free; NULL for NULL.
char *windrow_path(const windrow_db *db);

// The keyspace that every database has. To be freed by windrow_keyspace_free; NULL for NULL.
windrow_keyspace *windrow_default_keyspace(const windrow_db *db);

// The keyspace of that name, which is created if it does not exist. `options` may be NULL.
windrow_keyspace *windrow_keyspace_open(const windrow_db *db,
                                        const char *name,
                                        const windrow_keyspace_options *options,
                                        windrow_error **error);

// The keyspace of that name; NULL, without an error, if it does not exist.
windrow_keyspace *windrow_keyspace_find(const windrow_db *db,
                                        const char *name,
                                        windrow_error **error);

// Calls `each` with the name of every keyspace, which is valid during the call.
void windrow_keyspaces(const windrow_db *db,
                       void *state,
                       void (*each)(void *state, const char *name));

// Drops a keyspace with all its entries. Its handles fail from then on.
bool windrow_keyspace_drop(const windrow_db *db, const char *name, windrow_error **error);

// A snapshot of the database as it is now. NULL for NULL.
windrow_snapshot *windrow_snapshot_new(const windrow_db *db);

// The kind of an error.
windrow_error_kind windrow_error_kind_of(const windrow_error *error);

// The message (the failure, its place and the remedy) in UTF-8, valid until the error is freed. For NULL: "no error".
const char *windrow_error_message(const windrow_error *error);

// Frees an error.
void windrow_error_free(windrow_error *error);

// Follows the database in a directory. `options` may be NULL.
windrow_follower *windrow_follower_open(const char *path,
                                        const windrow_options *options,
                                        windrow_error **error);

// Frees a follower, and so releases all that it held.
void windrow_follower_free(windrow_follower *follower);

// The database as of the last refresh, read-only. Later refreshes do not change it. To be freed by
// windrow_free.
windrow_db *windrow_follower_db(const windrow_follower *follower);

// Reads the writes since the last refresh. Returns 1 if there were any, 0 if not, -1 on an error.
int windrow_follower_refresh(const windrow_follower *follower, windrow_error **error);

// Refreshes in the background every `interval_ms` milliseconds; 0 ends that.
void windrow_follower_refresh_every(const windrow_follower *follower, uint64_t interval_ms);

// Makes a copy of the database as of the last refresh in a directory that is empty or does not
// exist.
bool windrow_follower_checkpoint(const windrow_follower *follower,
                                 const char *path,
                                 windrow_error **error);

// Begins an ingestion. None of its entries is visible before windrow_ingest_finish.
windrow_ingest *windrow_ingest_new(const windrow_keyspace *keyspace, windrow_error **error);

// Adds an entry. Its key must be after those added before.
bool windrow_ingest_put(windrow_ingest *ingest,
                        windrow_slice key,
                        windrow_slice value,
                        windrow_error **error);

// Makes all entries visible at one moment, durably. The ingestion has ended then, and must be
// freed.
bool windrow_ingest_finish(windrow_ingest *ingest, windrow_error **error);

// Frees an ingestion. One that was not finished leaves no entry.
void windrow_ingest_free(windrow_ingest *ingest);

// Frees the handle. The keyspace stays.
void windrow_keyspace_free(windrow_keyspace *keyspace);

// The keyspace's name, to be freed by windrow_string_free; NULL for NULL.
char *windrow_keyspace_name(const windrow_keyspace *keyspace);

// The value of `key`, as of `snapshot` (NULL: now); to be freed by windrow_value_free. NULL, without an error, if the
// key is absent.
windrow_value *windrow_get(const windrow_keyspace *keyspace,
                           const windrow_snapshot *snapshot,
                           windrow_slice key,
                           windrow_error **error);

// Whether `key` has a value, as of `snapshot` (NULL: now). False on an error, too.
bool windrow_contains(const windrow_keyspace *keyspace,
                      const windrow_snapshot *snapshot,
                      windrow_slice key,
                      windrow_error **error);

// Reads the values of `count` keys at once, which waits for the device less often than one by one. `values` has room
// for `count` pointers; each becomes a value to be freed, or NULL. If the call fails, all are NULL.
bool windrow_multi_get(const windrow_keyspace *keyspace,
                       const windrow_snapshot *snapshot,
                       const windrow_slice *keys,
                       size_t count,
                       windrow_value **values,
                       windrow_error **error);

// The number of milliseconds until `key` expires; -1 if it never does, -2 if it is absent, -3 on an error.
int64_t windrow_ttl_ms(const windrow_keyspace *keyspace,
                       windrow_slice key,
                       windrow_error **error);

// Puts a value. `sync`: it is on the device when the call returns; else it has reached the kernel.
bool windrow_put(const windrow_keyspace *keyspace,
                 windrow_slice key,
                 windrow_slice value,
                 bool sync,
                 windrow_error **error);

// Puts a value that expires after `ttl_ms` milliseconds.
bool windrow_put_with_ttl(const windrow_keyspace *keyspace,
                          windrow_slice key,
                          windrow_slice value,
                          uint64_t ttl_ms,
                          bool sync,
                          windrow_error **error);

// Deletes a key. An absent key is no error.
bool windrow_delete(const windrow_keyspace *keyspace,
                    windrow_slice key,
                    bool sync,
                    windrow_error **error);

// Deletes a key that was put once since its last delete. It is cheaper than a delete, and wrong for any other key.
bool windrow_single_delete(const windrow_keyspace *keyspace,
                           windrow_slice key,
                           bool sync,
                           windrow_error **error);

// Deletes all keys in `from..to`, any number of them.
bool windrow_delete_range(const windrow_keyspace *keyspace,
                          windrow_slice from,
                          windrow_slice to,
                          bool sync,
                          windrow_error **error);

// Merges an operand into a key's value by the keyspace's merge operator, without reading the value.
bool windrow_merge(const windrow_keyspace *keyspace,
                   windrow_slice key,
                   windrow_slice operand,
                   bool sync,
                   windrow_error **error);

// Makes the value `new_value` (NULL: absent) if it is `old_value` (NULL: absent). Returns 1 if it was, 0 if it was
// another one, -1 on an error.
int windrow_compare_exchange(const windrow_keyspace *keyspace,
                             windrow_slice key,
                             const windrow_slice *old_value,
                             const windrow_slice *new_value,
                             bool sync,
                             windrow_error **error);

// The number of keys in `from..to` (NULL: to the end), by reading them. 0 on an error.
uint64_t windrow_count(const windrow_keyspace *keyspace,
                       const windrow_slice *from,
                       const windrow_slice *to,
                       windrow_error **error);

// About the number of keys, without reading them. 0 on an error.
uint64_t windrow_approximate_count(const windrow_keyspace *keyspace, windrow_error **error);

// About the number of bytes that the keys in `from..to` take. 0 on an error.
uint64_t windrow_approximate_bytes(const windrow_keyspace *keyspace,
                                   windrow_slice from,
                                   windrow_slice to,
                                   windrow_error **error);

// Writes the keyspace's memtable to tables.
bool windrow_keyspace_flush(const windrow_keyspace *keyspace, windrow_error **error);

// Merges the entries in `from..to` (NULL: to the end) down to the last level, and waits for it.
bool windrow_keyspace_compact(const windrow_keyspace *keyspace,
                              const windrow_slice *from,
                              const windrow_slice *to,
                              windrow_error **error);

// Sets the merge policy of the tree from now on: a preset's name, or a policy in full.
bool windrow_keyspace_set_policy(const windrow_keyspace *keyspace,
                                 const char *policy,
                                 windrow_error **error);

// The merge policy in full, to be freed by windrow_string_free; NULL for NULL.
char *windrow_keyspace_policy(const windrow_keyspace *keyspace);

// Makes options with the defaults: a database that is created if it does not exist, with 256 MiB of memory.
windrow_options *windrow_options_new(void);

// Frees options. Databases that were opened with them do not need them.
void windrow_options_free(windrow_options *options);

// Sets an option of docs/options.md by its name: `memory_bytes` to `64MiB`, `preset` to `leveled`.
bool windrow_options_set(windrow_options *options,
                         const char *name,
                         const char *value,
                         windrow_error **error);

// Whether a database that does not exist is created. If not, that is an error. (Default: yes.)
void windrow_options_create_if_missing(windrow_options *options, bool yes);

// Whether a database that exists is refused. (Default: no.)
void windrow_options_error_if_exists(windrow_options *options, bool yes);

// Whether the database is opened for reading only. (Default: no.)
void windrow_options_read_only(windrow_options *options, bool yes);

// Sets the options of the default keyspace; NULL: the defaults.
bool windrow_options_default_keyspace(windrow_options *options,
                                      const windrow_keyspace_options *of,
                                      windrow_error **error);

// Registers an order of keys. The struct is copied; its `state` is destroyed when no options and no database need it
// any more, also if this call fails.
bool windrow_options_add_comparator(windrow_options *options,
                                    const windrow_comparator *comparator,
                                    windrow_error **error);

// Registers a merge operator, as windrow_options_add_comparator does an order.
bool windrow_options_add_merge_operator(windrow_options *options,
                                        const windrow_merge_operator *merge_operator,
                                        windrow_error **error);

// Gives the keyspace of that name a compaction filter.
bool windrow_options_add_compaction_filter(windrow_options *options,
                                           const char *keyspace,
                                           const windrow_compaction_filter *filter,
                                           windrow_error **error);

// Sets the listener: `on_event` is called with each event of the database, as a sentence that is valid during the
// call. It is called from any thread, several at once, and must neither wait for the database nor write to it.
// `destroy` may be NULL.
bool windrow_options_set_listener(windrow_options *options,
                                  void *state,
                                  void (*on_event)(void *state, const char *event),
                                  void (*destroy)(void *state),
                                  windrow_error **error);

// Frees a snapshot, so that merges may drop the versions that only it could see.
void windrow_snapshot_free(windrow_snapshot *snapshot);

// Begins a transaction. `pessimistic`: it locks each key that it writes, and waits up to `lock_timeout_ms` for the
// locks of others; else its commit detects conflicts, and fails with WINDROW_ERROR_KIND_CONFLICT.
windrow_transaction *windrow_begin(const windrow_db *db,
                                   bool pessimistic,
                                   uint64_t lock_timeout_ms,
                                   windrow_error **error);

// Frees a transaction. One that was not committed writes nothing.
void windrow_transaction_free(windrow_transaction *transaction);

// Writes all, or fails and writes nothing: after WINDROW_ERROR_KIND_CONFLICT begin another transaction and do the same
// again. The transaction has ended in either case, and must be freed. `sync`: it is on the device when the call
// returns.
bool windrow_commit(windrow_transaction *transaction,
                    bool sync,
                    windrow_error **error);

// Undoes the transaction's writes, and releases its locks. The transaction goes on.
bool windrow_rollback(windrow_transaction *transaction, windrow_error **error);

// Sets a savepoint, to which windrow_rollback_to_savepoint goes back. Savepoints nest.
bool windrow_savepoint(windrow_transaction *transaction, windrow_error **error);

// Undoes the writes since the last savepoint, and removes the savepoint.
bool windrow_rollback_to_savepoint(windrow_transaction *transaction, windrow_error **error);

// A key's value, as windrow_get. `for_update`: the key is locked, so that no other transaction writes it before the
// end.
windrow_value *windrow_transaction_get(windrow_transaction *transaction,
                                       const windrow_keyspace *keyspace,
                                       windrow_slice key,
                                       bool for_update,
                                       windrow_error **error);

// Adds a put.
bool windrow_transaction_put(windrow_transaction *transaction,
                             const windrow_keyspace *keyspace,
                             windrow_slice key,
                             windrow_slice value,
                             windrow_error **error);

// Adds a delete.
bool windrow_transaction_delete(windrow_transaction *transaction,
                                const windrow_keyspace *keyspace,
                                windrow_slice key,
                                windrow_error **error);

// Adds a delete of all keys in `from..to`.
bool windrow_transaction_delete_range(windrow_transaction *transaction,
                                      const windrow_keyspace *keyspace,
                                      windrow_slice from,
                                      windrow_slice to,
                                      windrow_error **error);

// Adds a merge.
bool windrow_transaction_merge(windrow_transaction *transaction,
                               const windrow_keyspace *keyspace,
                               windrow_slice key,
                               windrow_slice operand,
                               windrow_error **error);

// Calls `each` with the entries of `from..to` (NULL: to the end) as the transaction sees them, in the order of keys
// or, `reverse`, from the last one, until it returns false. `each` must not use the transaction.
bool windrow_transaction_scan(windrow_transaction *transaction,
                              const windrow_keyspace *keyspace,
                              const windrow_slice *from,
                              const windrow_slice *to,
                              bool reverse,
                              void *state,
                              bool (*each)(void *state, windrow_slice key, windrow_slice value),
                              windrow_error **error);

// Makes everything that was written durable.
bool windrow_sync(const windrow_db *db, windrow_error **error);

// Writes all memtables to tables.
bool windrow_flush(const windrow_db *db, windrow_error **error);

// Merges all keyspaces down to their last levels, and waits for it.
bool windrow_compact(const windrow_db *db, windrow_error **error);

// Waits until nothing is left to be flushed or merged.
bool windrow_wait_idle(const windrow_db *db, windrow_error **error);

// Makes a copy of the database as it is now in a directory that is empty or does not exist, by hard links where both
// are on one file system.
bool windrow_checkpoint(const windrow_db *db,
                        const char *path,
                        windrow_error **error);

// Reads every table and log, and checks every checksum. Returns true if it finds no problem. `problems` (may be NULL)
// becomes the number of problems, and the error the first of them.
bool windrow_verify(const windrow_db *db,
                    uint64_t *problems,
                    windrow_error **error);

// Turns writing on again after a failure, once its cause is gone: for one, when there is room again.
bool windrow_resume(const windrow_db *db,
                    windrow_error **error);

// True if writing is on; else `error` becomes the error that turned it off.
bool windrow_is_writable(const windrow_db *db, windrow_error **error);

// All counters and sizes as JSON, to be freed by windrow_string_free; NULL for NULL.
char *windrow_stats_json(const windrow_db *db);

// All counters and sizes as a table for people, to be freed likewise; NULL for NULL.
char *windrow_stats_text(const windrow_db *db);

// Removes a database's files, and its directory if nothing else is in it.
bool windrow_destroy(const char *path, windrow_error **error);

// Makes a damaged database openable again from its readable parts. `options` may be NULL, but must have its
// comparators and merge operators. Returns the report as JSON, to be freed by windrow_string_free; NULL on an error.
char *windrow_repair(const char *path,
                     const windrow_options *options,
                     windrow_error **error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WINDROW_H */

/* The bytes of a text that ends with a zero byte, without that. */
static inline windrow_slice windrow_text(const char *text) {
  windrow_slice slice = {text, text ? strlen(text) : 0};
  return slice;
}

/* `len` bytes. */
static inline windrow_slice windrow_bytes(const void *data, size_t len) {
  windrow_slice slice = {data, len};
  return slice;
}
