// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "feedline/error.h"

namespace feedline::decode {

// The types of soxr.h, whose layout has not changed since libsoxr 0.1.0.
struct SoxrQuality {
  double precision, phase_response, passband_end, stopband_begin;
  void* internal;
  unsigned long flags;
};
struct SoxrIo {
  int input_type, output_type;
  double scale;
  void* internal;
  unsigned long flags;
};

// The functions of libsoxr that Feedline calls.
struct SoxrLibrary {
  void* (*create)(double input_rate, double output_rate, unsigned channels, const char** error, const SoxrIo* io,
                  const SoxrQuality* quality, const void* runtime) = nullptr;
  const char* (*process)(void* resampler, const void* in, std::size_t in_frames, std::size_t* in_done, void* out,
                         std::size_t out_frames, std::size_t* out_done) = nullptr;
  void (*destroy)(void* resampler) = nullptr;
  SoxrQuality (*quality_spec)(unsigned long recipe, unsigned long flags) = nullptr;
  SoxrIo (*io_spec)(int input_type, int output_type) = nullptr;
  const char* (*version)() = nullptr;
  std::string file;  // the library's name or path
};

// Returns the library that FEEDLINE_LIBSOXR names, otherwise the system's or the one in Python's package soxr. kConfig:
// none was found; the message names the packages to install. Thread-safe; stays open until the process ends.
Result<const SoxrLibrary*> soxr_library();

}  // namespace feedline::decode
