/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The C interface of plugins: shared libraries that add storage schemes, record formats, image codecs and image
 * operations to Feedline. Needs no other header and no library of Feedline; C99 or C++.
 *
 * A plugin exports feedline_register_v1(), which calls the add_ functions of its argument. Feedline loads a plugin with
 * feedline.load_plugin(path) in Python, or feedline/plugin/loading.h in C++.
 *
 * Rules for all functions of a plugin:
 * - They return FEEDLINE_OK, or another code after writing the reason to `message`.
 * - They must not throw: no exception may leave the plugin. In C++, see feedline/plugin/guard.h. If an initializer of a
 *   static variable throws, the process ends.
 * - Threads call them concurrently, also with the same arguments. They may block, and must not print or exit.
 * - The process may fork after loading; a child must not depend on the parent's threads, locks or connections.
 * The lists, texts and contexts to which structs point must exist until the process ends: plugins stay loaded. Texts
 * are UTF-8 and end with a zero byte. Names have at most 64 letters (a-z, A-Z), digits, "_", "-" and ".". `size` is the
 * size of the struct, which also tells apart its versions. */

#include <stddef.h>
#include <stdint.h>

#define FEEDLINE_PLUGIN_VERSION 1
#define FEEDLINE_PLUGIN_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

enum {
  FEEDLINE_OK = 0,
  FEEDLINE_BAD_ARGUMENT = 1, /* the caller's request is wrong: ConfigError */
  FEEDLINE_BAD_DATA = 2,     /* a stored object is damaged: DataError, which on_error="skip" leaves out */
  FEEDLINE_NOT_FOUND = 3,    /* the object does not exist: StorageError */
  FEEDLINE_FAILED = 4        /* reading failed for another reason: StorageError */
};

typedef struct feedline_message {
  char text[1024]; /* one sentence: what is wrong, what was given, what to do; empty at the call */
} feedline_message;

typedef struct feedline_bytes {
  const void* data;
  size_t size;
} feedline_bytes;

/* ---- a storage scheme: read-only objects by URL ---- */

typedef struct feedline_object {
  uint64_t bytes;
  uint64_t tag;  /* differs for every version of the object; 0 if unknown */
  int is_folder; /* 1: other members are unused */
} feedline_object;

/* Receives the entries of a folder, in any order. `path` is relative to the folder, without a slash at either end. */
typedef struct feedline_listing {
  void* host;
  void (*add)(void* host, const char* path, const feedline_object* object);
} feedline_listing;

typedef struct feedline_storage_v1 {
  size_t size;
  const char* scheme;  /* "demo" for demo://..., in lower case */
  const char* version; /* of the implementation, for explain() */
  void* context;       /* first argument of the functions below */
  int (*stat)(void* context, const char* url, feedline_object* object, feedline_message* message);
  /* Reads `bytes` bytes from `offset` to `out`. `got`: fewer only at the end of the object. */
  int (*read)(void* context, const char* url, uint64_t offset, void* out, size_t bytes, size_t* got,
              feedline_message* message);
  /* all: 1 lists recursively, without the folders themselves. A folder that does not exist is empty. NULL: objects
   * cannot be listed. */
  int (*list)(void* context, const char* url, int all, const feedline_listing* listing, feedline_message* message);
} feedline_storage_v1;

/* ---- a record format: files in, samples with named fields out ---- */

typedef struct feedline_field {
  const char* name;
  /* "image", "mask": bytes of an image file; "audio": of an audio file; "array", "boxes", "keypoints": of a .npy file;
   * "bytes", "text", "json"; "value": 8 bytes, an int64 in the machine's byte order, copied when read() returns */
  const char* kind;
} feedline_field;

/* An open file. read() is like that of feedline_storage_v1. Valid during the call. */
typedef struct feedline_file {
  const char* name;
  uint64_t bytes;
  void* host;
  int (*read)(void* host, uint64_t offset, void* out, size_t bytes, size_t* got, feedline_message* message);
} feedline_file;

/* Memory for values that are not stored as they are, such as decompressed ones. Valid until the sample is decoded. */
typedef struct feedline_memory {
  void* host;
  void* (*allocate)(void* host, size_t bytes); /* NULL: not enough memory */
} feedline_memory;

typedef struct feedline_format_v1 {
  size_t size;
  const char* name;    /* the value of format= */
  const char* version; /* part of a dataset's fingerprint: change it if the samples of the same file change */
  void* context;
  /* Files with these extensions (lower case, without a dot) are opened by this format if format= is omitted. */
  const char* const* extensions;
  size_t extension_count;
  const feedline_field* fields; /* at least one */
  size_t field_count;
  /* Reads what is needed to locate samples, such as an index or a header. `shard` is passed to the functions below, and
   * is closed if and only if open() succeeds. */
  int (*open)(void* context, const feedline_file* file, void** shard, uint64_t* samples, feedline_message* message);
  void (*close)(void* context, void* shard);
  /* The range of the file that contains the sample. Called often: it must not read the file. */
  int (*locate)(void* context, void* shard, uint64_t sample, uint64_t* offset, uint64_t* bytes,
                feedline_message* message);
  /* Sets values[i] to the bytes of field i: a part of `stored`, which has the located range, or of `memory`; a "value"
   * may be anywhere. Data that stays NULL means that the sample lacks the field. */
  int (*read)(void* context, void* shard, uint64_t sample, feedline_bytes stored, const feedline_memory* memory,
              feedline_bytes* values, feedline_message* message);
} feedline_format_v1;

/* ---- an image codec ---- */

typedef struct feedline_codec_v1 {
  size_t size;
  const char* name;    /* ImageInfo.format, in lower case: "qoi" */
  const char* version; /* part of the key of cached pixels: change it if the pixels change */
  void* context;
  /* Extensions of files (lower case, without a dot) that folders of images may contain. */
  const char* const* extensions;
  size_t extension_count;
  feedline_bytes magic; /* every file begins with these bytes, at least 2 */
  int (*read_header)(void* context, feedline_bytes file, int* width, int* height, feedline_message* message);
  /* Writes all pixels as 8-bit RGB, with rows `stride` bytes apart. */
  int (*decode)(void* context, feedline_bytes file, uint8_t* out, size_t stride, feedline_message* message);
} feedline_codec_v1;

/* ---- an image operation ---- */

typedef struct feedline_pixels {
  uint8_t* data; /* 8 bits, interleaved channels */
  int width, height;
  int channels;  /* 1 or 3 */
  size_t stride; /* bytes between rows */
} feedline_pixels;

typedef struct feedline_argument {
  const char* name; /* not "operation" or "fields", which are arguments of Dataset.apply() itself */
  double initial;   /* the value if the caller omits the argument; NaN if the caller must give it */
} feedline_argument;

enum {
  FEEDLINE_OPERATION_IS_RANDOM = 1,   /* run() uses its random number */
  FEEDLINE_OPERATION_MOVES_PIXELS = 2 /* a mirrored image would give another result; implied by output_size */
};

typedef struct feedline_operation_v1 {
  size_t size;
  const char* name;    /* the first argument of Dataset.apply() */
  const char* version; /* part of the key of cached pixels: change it if the pixels change */
  void* context;
  const feedline_argument* arguments;
  size_t argument_count;
  uint32_t flags;
  /* NULL: all numbers are valid. `arguments`: the values, in order. */
  int (*check)(void* context, const double* arguments, feedline_message* message);
  /* NULL: the output has the size of the input. Otherwise sets the size for an input of width x height; at the call,
   * `out_width` and `out_height` have these values. */
  int (*output_size)(void* context, const double* arguments, int width, int height, int* out_width, int* out_height,
                     feedline_message* message);
  /* Without output_size, `in` and `out` are the same pixels, to be changed in place. Otherwise fills `out`, which does
   * not overlap `in` and has the same number of channels. random: uniform bits for this sample, epoch and operation. */
  int (*run)(void* context, const double* arguments, uint64_t random, const feedline_pixels* in,
             const feedline_pixels* out, feedline_message* message);
} feedline_operation_v1;

/* ---- registration ---- */

/* Exists during the call of feedline_register_v1(). The add_ functions copy the struct. */
typedef struct feedline_registry_v1 {
  size_t size;
  const char* feedline_version; /* "0.2.0" */
  void* host;
  int (*add_storage)(void* host, const feedline_storage_v1* storage, feedline_message* message);
  int (*add_format)(void* host, const feedline_format_v1* format, feedline_message* message);
  int (*add_codec)(void* host, const feedline_codec_v1* codec, feedline_message* message);
  int (*add_operation)(void* host, const feedline_operation_v1* operation, feedline_message* message);
} feedline_registry_v1;

/* Called once per process. If it fails, nothing is registered and the library is closed. Return the code of an add_
 * function that fails. */
FEEDLINE_PLUGIN_EXPORT int feedline_register_v1(const feedline_registry_v1* registry, feedline_message* message);

#ifdef __cplusplus
}
#endif
