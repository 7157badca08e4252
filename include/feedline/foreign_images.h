// SPDX-License-Identifier: Apache-2.0
#pragma once

// Other libraries that decode. Images: formats that the engine does not support, for which the Python package feedline
// uses Pillow. Audio: libsndfile for FLAC, Ogg, MP3 and others, and libsoxr for resampling. Videos: FFmpeg's. These are
// opened at run time.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "feedline/operation.h"

namespace feedline {

// Must be thread-safe: called from several threads concurrently.
class ForeignImages {
 public:
  virtual ~ForeignImages() = default;

  struct Opened {
    std::string kind;  // the library's name for the format: "GIF"
    int width = 0;
    int height = 0;
    std::shared_ptr<void> image;  // in the library's representation
    int orientation = 1;          // EXIF orientation, 1 to 8; 1 if the library always rotates images of this format
    std::string depth = {};       // "16 bits", "32 bits" or "floats"; empty for 8 bits
  };
  // Reads the header of the first image. `bytes` need not outlive the call. With applies_exif, rotates the image
  // according to its EXIF orientation. Fails with kData if the format is not supported.
  virtual Result<Opened> open(std::span<const std::byte> bytes, bool applies_exif) const = 0;
  // Writes the region's 8-bit pixels with 1 or 3 channels to `out`, with rows `stride` bytes apart. Fails with kData if
  // the image is damaged. Requires: the region is inside the image.
  virtual Result<void> decode(const Opened& opened, const Box& region, ColorMode mode, std::uint8_t* out,
                              std::size_t stride) const = 0;
};

// Sets the decoder for the whole process, replacing any other; nullptr removes it.
void read_foreign_images_by(std::shared_ptr<const ForeignImages> images);
// The number of images of each format that this process has decoded with ForeignImages.
std::map<std::string, std::uint64_t> foreign_images_decoded();

enum class AudioLibrary : std::uint8_t { kSndfile, kSoxr };

// Sets the file that is opened if the system has no such library and the environment variable (FEEDLINE_LIBSNDFILE,
// FEEDLINE_LIBSOXR) names none. The Python package passes the files in the packages soundfile and soxr.
void set_packaged(AudioLibrary library, const std::string& file);

// The extensions of audio files, in lower case, without a dot.
std::vector<std::string> audio_extensions();

struct AudioLibraryState {
  std::string file;     // empty if the library was not found
  std::string version;  // as the library reports it
  std::string problem;  // if it was not found: why, and what to install
};
AudioLibraryState find_library(AudioLibrary library);
// The extensions of files that are recognised as videos, in lower case and without a dot.
std::span<const std::string_view> video_extensions();
// Returns the versions of FFmpeg's libraries: "libavformat 59.27.100, ...". kConfig: no supported version is installed;
// the message names the packages to install. The first call loads and tests them.
Result<std::string> ffmpeg_version();

}  // namespace feedline
