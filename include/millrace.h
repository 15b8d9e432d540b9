/* Millrace's loader for other languages: datasets, loaders, samplers, batches, writers.
 *
 * Success is MR_OK. Every function that can fail returns a code and, where `error` is not null and
 * the call failed, sets *error to what went wrong, which the caller frees. Results are set on
 * success only. Texts are UTF-8 and end with a NUL; a `char**` result is freed with mr_text_free().
 *
 * Threads: a dataset may be used from any number of threads. A loader, a sampler and a writer need
 * one thread at a time, but for mr_loader_cancel(), mr_loader_stats() and mr_loader_digest(). A
 * batch never changes and may be read from any thread.
 *
 * Processes: no thread, socket or file exists before mr_dataset_open(). After a fork the child may
 * use datasets and samplers of its parent, which connect anew by themselves; a loader stays with
 * the process that opened it, and answers MR_UNSUPPORTED elsewhere. Batches that the parent holds
 * at the fork can be read in both, in each until it lets go. All handles that are closed or
 * released may be null.
 *
 * Later releases add functions, options and fields of JSON documents; they change none. Options
 * that are not known are refused with MR_INVALID_ARGUMENT.
 */
#ifndef MILLRACE_H
#define MILLRACE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define MR_EXPORT __attribute__((visibility("default")))
#else
#define MR_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a function that existed changes its meaning. */
#define MR_ABI_VERSION 1
MR_EXPORT uint32_t mr_abi_version(void);
/* The release, as "0.1.0". Static. */
MR_EXPORT const char* mr_release(void);

/* -- Failures ---------------------------------------------------------------------------------- */

enum {
  MR_AGAIN = -2, /* Not a failure: the batch is not there yet, and can be asked for again. */
  MR_END = -1,   /* Not a failure: the epoch has ended. */
  MR_OK = 0,
  MR_UNAVAILABLE = 1,
  MR_THROTTLED = 2,
  MR_CONFLICT = 3,
  MR_PRECONDITION_FAILED = 4, /* The object in the store is another one by now. */
  MR_NOT_FOUND = 5,
  MR_INVALID_ARGUMENT = 6,
  MR_PERMISSION_DENIED = 7,
  MR_UNAUTHENTICATED = 8,
  MR_UNSUPPORTED = 9,
  MR_RESOURCE_EXHAUSTED = 10,
  MR_DEADLINE_EXCEEDED = 11,
  MR_CANCELLED = 12,
  MR_CORRUPTION = 13,
  MR_IO_ERROR = 14,
  MR_INTERNAL = 15
};

typedef struct mr_error mr_error;
MR_EXPORT int mr_error_code(const mr_error* error);
/* "not_found", ...; static. */
MR_EXPORT const char* mr_error_name(const mr_error* error);
/* One sentence for people. Lives as long as the error. */
MR_EXPORT const char* mr_error_message(const mr_error* error);
MR_EXPORT void mr_error_free(mr_error* error);

MR_EXPORT void mr_text_free(char* text);

/* -- Calling off ------------------------------------------------------------------------------- */

/* Ends calls that wait, from any thread: those that are given one answer MR_CANCELLED soon after
 * mr_cancellation_request(). One that was requested stays so. It may be freed while calls have it.
 */
typedef struct mr_cancellation mr_cancellation;
MR_EXPORT mr_cancellation* mr_cancellation_make(void);
MR_EXPORT void mr_cancellation_request(mr_cancellation* cancellation);
MR_EXPORT void mr_cancellation_free(mr_cancellation* cancellation);

/* -- Datasets ---------------------------------------------------------------------------------- */

/* What a job reads, and in which order. An epoch has mr_dataset_samples() positions; which sample
 * stands at a position is a function of contents, seed, epoch and options, and of nothing else. */
typedef struct mr_dataset mr_dataset;
typedef struct mr_batch mr_batch;

/* Opens a dataset, or several that are mixed. `options` is a JSON object:
 *
 *   "datasets"       an array of at least one object:
 *     "name"         "imagenet@v2"; or a directory ("/data/x", "./x"), or a URL ("s3://b/p",
 *                    "file:///p"), whose objects are listed now and need not be registered
 *     "reader"       "auto" (default), "files", "grouped", "webdataset", "mds"
 *     "allow_pickle" true: columns of MDS that are Python's pickles are handed out, as bytes of the
 *                    type "pickle". Whoever unpickles them runs what code they hold
 *     "verify_hashes" true: shards of MDS are read whole before their first sample and compared
 *                    with the hashes of their index; compressed ones always are
 *     "digest"       of the content that it must have, as mr_dataset_info() says it: for who opens
 *                    what another process has open. MR_PRECONDITION_FAILED when it is another
 *                    one by now; default: as it is
 *     "directory"    only what is below it in the version; "" (default) is all
 *     "split"        "0-90/100": these places of every 100 samples
 *     "split_seed"   which places fall where; default 0
 *     "weight", "repeat" or "choose"
 *                    how much of an epoch it gives; the same kind for all; default "repeat": 1
 *   "order"          "block" (default), "full", "none"
 *   "seed"           of the order; default 0
 *   "window_rows"    how many rows of 48 blocks are shuffled together
 *   "epoch_samples"  the size of an epoch by weights, and only by those; 0 (default): what all
 *                    datasets have
 *   "on_error"       for mr_dataset_read(): "raise" (default), "skip", "substitute"
 *   "state"          a saved state: weights that were changed in that run hold for this dataset
 *   "engine"         "daemon": the one of this machine, started when there is none.
 *                    "process": in this process, with a cache of its own.
 *                    "auto" (default): the daemon, and this process where none can be had
 *   "settings"       an object of Millrace's settings by their names (docs/config.md), all texts:
 *                    "store", "cache", "socket", ...; and "config", the file to read others from
 *   "program"        the millrace program that a daemon is started with; default: $MILLRACE_BIN,
 *                    one beside this library, one in the path
 *   "run"            the run that reads are charged to; default: $MILLRACE_RUN
 *   "job"            a name that all who read for one training give, in whatever process. What they
 *                    skip or replace is kept under it, for the states of its sampler; default: none
 *   "timeout"        seconds that opening may take; default 300
 */
MR_EXPORT int mr_dataset_open(const char* options, mr_dataset** dataset, mr_error** error);
/* The same, which can be called off. `cancellation` may be null. */
MR_EXPORT int mr_dataset_open_cancellable(const char* options, const mr_cancellation* cancellation,
                                          mr_dataset** dataset, mr_error** error);
/* Loaders and samplers of it may live on. */
MR_EXPORT void mr_dataset_close(mr_dataset* dataset);

/* Of one epoch. */
MR_EXPORT uint64_t mr_dataset_samples(const mr_dataset* dataset);
/* A JSON object: "samples" (of an epoch), "engine" ("daemon" or "process"), "order", "seed", and
 * "datasets", each with "name", "version" (as resolved; "" where not registered), "digest" (of the
 * content, hexadecimal), "reader", "split", "samples" (after the split), "bytes", and "classes",
 * the names of labels by their number, where the reader has them. */
MR_EXPORT int mr_dataset_info(const mr_dataset* dataset, char** json, mr_error** error);

/* The samples at some positions of an epoch, in the order given. Positions are below
 * mr_dataset_samples(). Blocks; `timeout` is in seconds, 0: the default of 300. The failure of a
 * sample names it, and is handled as "on_error" says: with "skip" the batch has fewer samples. */
MR_EXPORT int mr_dataset_read(mr_dataset* dataset, uint64_t epoch, const uint64_t* positions,
                              size_t count, double timeout, mr_batch** batch, mr_error** error);
/* The same, which can be called off. `cancellation` may be null. */
MR_EXPORT int mr_dataset_read_cancellable(mr_dataset* dataset, uint64_t epoch,
                                          const uint64_t* positions, size_t count, double timeout,
                                          const mr_cancellation* cancellation, mr_batch** batch,
                                          mr_error** error);

/* -- Loaders ----------------------------------------------------------------------------------- */

/* The batches of one rank, read ahead in order. */
typedef struct mr_loader mr_loader;

/* `options` is a JSON object:
 *
 *   "batch"           samples in a batch of one rank; needed
 *   "rank", "world"   default 0 of 1
 *   "ranks_per_node"  default: the world, where that is 8 or less, else 1
 *   "replication"     so many consecutive ranks see the same samples; default 1
 *   "last"            what becomes of the rest: "even" (default: dealt evenly over the last two
 *                     steps), "drop", "pad"
 *   "prefetch"        batches that are read ahead; default 4
 *   "on_error"        a sample that cannot be had: "raise" (default), "skip" or "substitute", the
 *                     next position of the epoch that can be had, by a fixed rule
 *   "failures_max"    so many failed samples in a row end in a failure after all; default 100
 *   "sample_timeout"  seconds that a batch may take to read, with all retries; default 300
 *   "watchdog"        seconds of waiting for a batch, over all calls, after which it is logged
 *                     where it is stuck; default 60, 0: never
 *   "epochs"          how many the job has: nothing of a later one is fetched, and asking for it is
 *                     MR_INVALID_ARGUMENT. Default 0: not known, and the next one is always fetched
 *                     before this one ends
 *   "epoch"           where to begin; default 0
 *   "state"           a saved state to go on from, instead
 *
 * Reads nothing before the first mr_loader_next(). MR_INVALID_ARGUMENT also for fewer samples than
 * ranks, and for a state of another job: the message names the field. */
MR_EXPORT int mr_loader_open(mr_dataset* dataset, const char* options, mr_loader** loader,
                             mr_error** error);
MR_EXPORT void mr_loader_close(mr_loader* loader);

/* The next batch of the epoch; MR_END behind the last one, and then the next call begins the next
 * epoch. An epoch has equally many batches on every rank; the last may be empty for some: it has
 * the columns of the others then, as a sample of each dataset tells them.
 * `timeout` is in seconds, 0: none. MR_AGAIN when it is over, without an error: nothing is lost,
 * and the next call waits for the same batch, so that callers can look for signals between short
 * waits. MR_DEADLINE_EXCEEDED is the batch's own ("sample_timeout"). After failures the next call
 * tries the same batch again. */
MR_EXPORT int mr_loader_next(mr_loader* loader, double timeout, mr_batch** batch, mr_error** error);
/* Ends a mr_loader_next() that waits in another thread, with MR_CANCELLED. */
MR_EXPORT void mr_loader_cancel(mr_loader* loader);

/* Of the epoch from where the loader was opened, loaded or last began an epoch: how many batches
 * there are, and how many of them were handed out. */
MR_EXPORT uint64_t mr_loader_steps(const mr_loader* loader);
MR_EXPORT uint64_t mr_loader_step(const mr_loader* loader);
MR_EXPORT uint64_t mr_loader_epoch(const mr_loader* loader);
/* Begins that epoch. */
MR_EXPORT int mr_loader_set_epoch(mr_loader* loader, uint64_t epoch, mr_error** error);

/* Where the job is, behind the batches that were handed out: a few hundred bytes of text, good for
 * all ranks and for any other topology. At the end of an epoch it names the beginning of the next.
 */
MR_EXPORT int mr_loader_state(mr_loader* loader, char** state, mr_error** error);
MR_EXPORT int mr_loader_load_state(mr_loader* loader, const char* state, mr_error** error);

/* Changes the mix, soon behind what was handed out. `shares` is a JSON array with one object for
 * each dataset: {"weight": 2}, or "repeat" or "choose". All ranks do so at the same step. */
MR_EXPORT int mr_loader_set_shares(mr_loader* loader, const char* shares, mr_error** error);

/* A JSON object: "batches", "samples", "bytes" (handed out), "epoch", "step", "steps", "ready"
 * (batches that wait to be taken), "dropped" and "padded" (samples of this epoch, over all ranks,
 * that "last" leaves out or hands out twice), "seconds" with "waiting" (the caller for batches),
 * "store" (reading), "decode", "consumer" (the caller between two batches), "failed" (samples) and
 * "failures", the last of them with "epoch", "position", "source", "sample", "key", "error" and
 * "action"; "stuck", a sentence where a batch takes long, else null; "reconnects". */
MR_EXPORT int mr_loader_stats(mr_loader* loader, char** json, mr_error** error);
/* Of the samples that this rank delivered, as docs/loader.md has it: the digests of all ranks add
 * up to that of the job (mr_digest_add()), which is the same for every topology. It begins anew
 * where a state is loaded, but for a job of one rank, which goes on with that of the state. */
MR_EXPORT int mr_loader_digest(mr_loader* loader, char** digest, mr_error** error);
MR_EXPORT int mr_digest_add(const char* a, const char* b, char** sum, mr_error** error);

/* -- Samplers ---------------------------------------------------------------------------------- */

/* The dealing alone: which positions a rank takes, step by step, for those who read by
 * mr_dataset_read() in other processes. From the second step on the daemon is told what follows, so
 * that it is fetched before they ask. Takes no memory by samples. */
typedef struct mr_sampler mr_sampler;

/* `options` as mr_loader_open()'s: "batch", "rank", "world", "ranks_per_node", "replication",
 * "last", "epochs", "epoch", "state". */
MR_EXPORT int mr_sampler_open(mr_dataset* dataset, const char* options, mr_sampler** sampler,
                              mr_error** error);
MR_EXPORT void mr_sampler_close(mr_sampler* sampler);
/* The positions of the next step, up to "batch" of them. MR_END as mr_loader_next(). `positions`
 * has room for `capacity`, which is at least "batch". */
MR_EXPORT int mr_sampler_next(mr_sampler* sampler, uint64_t* positions, size_t capacity,
                              size_t* count, mr_error** error);
MR_EXPORT uint64_t mr_sampler_steps(const mr_sampler* sampler);
MR_EXPORT uint64_t mr_sampler_step(const mr_sampler* sampler);
MR_EXPORT uint64_t mr_sampler_epoch(const mr_sampler* sampler);
MR_EXPORT int mr_sampler_set_epoch(mr_sampler* sampler, uint64_t epoch, mr_error** error);
/* Begins again with step 0: the steps since then were not used, and no digest has them. */
MR_EXPORT int mr_sampler_rewind(mr_sampler* sampler, mr_error** error);
/* As of the beginning of a step, which is at most mr_sampler_steps(): mr_sampler_step() is behind
 * all that was asked for, a smaller one behind what the training has really seen. Its digest is of
 * the steps before, as they were dealt. Lost are the samples of these steps that readers of the
 * same "job" have skipped or replaced, and those of the state that the sampler went on from. */
MR_EXPORT int mr_sampler_state(mr_sampler* sampler, uint64_t step, char** state, mr_error** error);
MR_EXPORT int mr_sampler_load_state(mr_sampler* sampler, const char* state, mr_error** error);
/* As mr_loader_set_shares(), behind what was asked for. Others read with the new shares when they
 * open the dataset with a later state of this sampler. */
MR_EXPORT int mr_sampler_set_shares(mr_sampler* sampler, const char* shares, mr_error** error);
/* Of all positions that were handed out, with the samples that stand there; it goes on as
 * mr_loader_digest(). */
MR_EXPORT int mr_sampler_digest(mr_sampler* sampler, char** digest, mr_error** error);

/* -- Batches ----------------------------------------------------------------------------------- */

/* Samples in columns, in one piece of memory that is used again once the last reference goes. */

/* Counts references: a batch has one when it is handed out. */
MR_EXPORT void mr_batch_retain(mr_batch* batch);
MR_EXPORT void mr_batch_release(mr_batch* batch);

MR_EXPORT size_t mr_batch_samples(const mr_batch* batch);
MR_EXPORT uint64_t mr_batch_epoch(const mr_batch* batch);
/* One for each sample; they live as long as the batch: its position in the epoch, the dataset and
 * the sample of it that stands there, and a seed for random numbers of its own. For a sample that
 * stands in for another, position and seed are those of the one that it replaces. */
MR_EXPORT const uint64_t* mr_batch_positions(const mr_batch* batch);
MR_EXPORT const uint64_t* mr_batch_sources(const mr_batch* batch);
MR_EXPORT const uint64_t* mr_batch_sample_ids(const mr_batch* batch);
MR_EXPORT const uint64_t* mr_batch_seeds(const mr_batch* batch);

/* One field of all samples. What is at `data` depends on `type`:
 *
 *   "bytes", "str", "json", "str_int", "str_float", "str_decimal", "pickle"
 *               of sample i: data[offsets[i]] up to data[offsets[i + 1]]
 *   "int8" ... "int64", "uint8" ... "uint64", "float16", "float32", "float64"
 *               numbers in the machine's order; of sample i at the same offsets
 *   "pil:RGB"   and other modes: pixels, with a shape of height and width
 *   "list"      of sample i the items number offsets[i] up to offsets[i + 1], each of them bytes:
 *               item k is data[item_offsets[k]] up to data[item_offsets[k + 1]]
 *
 * A name may be that of several columns, with different types: then a sample is in one of them.
 * Files have "data" (bytes), "label" (int64, -1: none) and, as all readers, "__key__" (str). */
typedef struct mr_column {
  const char* name;
  const char* type;
  const void* data; /* Aligned to 64 bytes. */
  uint64_t data_bytes;
  const uint64_t* offsets;      /* samples + 1. */
  const uint64_t* item_offsets; /* Of a "list"; else null. */
  /* 0 for a sample that does not have the field, which is empty then. Null: all have it. */
  const uint8_t* present;
  /* All samples have it, with the same shape: `shape` has `dimensions` numbers, and `data` is one
   * array with the samples as its first dimension. Single numbers have 0 dimensions. */
  int32_t uniform;
  uint32_t dimensions;
  const uint64_t* shape;
  /* Where it is not uniform, and samples have shapes: `dimensions` numbers for each sample; those
   * with fewer dimensions have UINT64_MAX behind their own. Else null. */
  const uint64_t* shapes;
} mr_column;

MR_EXPORT size_t mr_batch_columns(const mr_batch* batch);
/* `index` is below mr_batch_columns(). What the column points to lives as long as the batch. */
MR_EXPORT void mr_batch_column(const mr_batch* batch, size_t index, mr_column* column);
/* All memory of the batch, for those who register it with a device. It is nobody else's while there
 * are references: who has the only one may write to columns in place. */
MR_EXPORT void mr_batch_memory(const mr_batch* batch, const void** data, size_t* bytes);

/* -- Writers ----------------------------------------------------------------------------------- */

/* Makes a version out of samples. Files are gathered in a directory of this machine and published
 * from there, packed, when somebody commits. */
typedef struct mr_writer mr_writer;

typedef struct mr_field {
  const char* name; /* What follows the dot in the file's name: "jpg", "cls"; "" for no dot. */
  const void* data;
  size_t bytes;
} mr_field;

/* `options`: "name" ("imagenet@v3"; needed), "settings" as mr_dataset_open()'s, "staging" (the
 * directory), "notes".
 *
 * Without "staging" it is one of the version's in the user's data directory, which one writer at a
 * time has: MR_CONFLICT names the process that does. It is empty at the beginning, whatever a
 * killed process or a failed commit left there.
 *
 * Several processes may write to one directory that they name, at the same time: all but one of
 * them close their writers, and the last commits all that is there. */
MR_EXPORT int mr_writer_open(const char* options, mr_writer** writer, mr_error** error);
/* One sample: a file "key.name" for each field. `key` is a path of at most 240 bytes a component.
 * MR_CONFLICT when somebody has written such a file already. */
MR_EXPORT int mr_writer_write(mr_writer* writer, const char* key, const mr_field* fields,
                              size_t count, mr_error** error);
/* Publishes all that is in the staging directory, and removes it. `json`: "version", "digest",
 * "files", "bytes". After a failure the directory stays: the message has the command that publishes
 * it, and this may be called again. */
MR_EXPORT int mr_writer_commit(mr_writer* writer, char** json, mr_error** error);
/* Removes the staging directory with all that anybody wrote. */
MR_EXPORT int mr_writer_abort(mr_writer* writer, mr_error** error);
/* Leaves what was written where it is: in a directory that was named, for another writer to commit.
 */
MR_EXPORT void mr_writer_close(mr_writer* writer);

#ifdef __cplusplus
}
#endif

#endif /* MILLRACE_H */
