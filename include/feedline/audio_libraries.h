// SPDX-License-Identifier: Apache-2.0
#pragma once

// The libraries for audio that are opened at run time: libsndfile for FLAC, Ogg, MP3 and others, libsoxr for
// resampling.

#include <cstdint>
#include <string>

namespace feedline {

enum class AudioLibrary : std::uint8_t { kSndfile, kSoxr };

// Sets the file that is opened if the system has no such library and the environment variable (FEEDLINE_LIBSNDFILE,
// FEEDLINE_LIBSOXR) names none. The Python package passes the files in the packages soundfile and soxr.
void set_packaged(AudioLibrary library, const std::string& file);

struct AudioLibraryState {
  std::string file;     // empty if the library was not found
  std::string version;  // as the library reports it
  std::string problem;  // if it was not found: why, and what to install
};
AudioLibraryState find_library(AudioLibrary library);

}  // namespace feedline
