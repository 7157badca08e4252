// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "feedline/error.h"

namespace feedline::decode {

// The types of sndfile.h, whose layout has not changed since libsndfile 1.0.
struct SndfileInfo {
  std::int64_t frames = 0;
  int rate = 0, channels = 0, format = 0, sections = 0, seekable = 0;
};
struct SndfileIo {
  std::int64_t (*length)(void* user);
  std::int64_t (*seek)(std::int64_t offset, int whence, void* user);
  std::int64_t (*read)(void* out, std::int64_t count, void* user);
  std::int64_t (*write)(const void* data, std::int64_t count, void* user);
  std::int64_t (*tell)(void* user);
};

// The functions of libsndfile that Feedline calls.
struct SndfileLibrary {
  void* (*open_virtual)(SndfileIo* io, int mode, SndfileInfo* info, void* user) = nullptr;
  int (*close)(void* file) = nullptr;
  std::int64_t (*seek)(void* file, std::int64_t frames, int whence) = nullptr;
  std::int64_t (*readf_float)(void* file, float* out, std::int64_t frames) = nullptr;
  std::int64_t (*readf_short)(void* file, std::int16_t* out, std::int64_t frames) = nullptr;
  const char* (*strerror)(void* file) = nullptr;
  int (*error)(void* file) = nullptr;
  const char* (*version_string)() = nullptr;
  std::string file;  // the library's name or path
};

// Returns the library that FEEDLINE_LIBSNDFILE names, otherwise the system's or the one in Python's package soundfile.
// kConfig: none was found; the message names the packages to install. Thread-safe; stays open until the process ends.
Result<const SndfileLibrary*> sndfile_library();

}  // namespace feedline::decode
