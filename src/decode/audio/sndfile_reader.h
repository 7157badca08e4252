// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "decode/audio/audio_reader.h"
#include "decode/audio/sndfile_library.h"

namespace feedline::decode {

// Reads a file with libsndfile, and owns its handle. The source must outlive the reader. Used by one thread.
class SndfileReader final : public AudioReader {
 public:
  // format: the name of the recognised format. kConfig: see sndfile_library(), or the library is too old for the
  // format.
  static Result<std::unique_ptr<AudioReader>> open(ByteSource& source, std::string_view format);
  ~SndfileReader() override;

  Result<void> read(std::uint64_t begin, std::span<float> out) override;
  Result<void> read(std::uint64_t begin, std::span<std::int16_t> out) override;

 private:
  // libsndfile's position in the file, and the first error of the source.
  struct Stream {
    ByteSource* source = nullptr;
    std::int64_t position = 0;
    Result<void> state;
    std::int64_t stated_lengths = 1;  // the length that libsndfile receives, in lengths of the source
    std::int64_t length() const { return static_cast<std::int64_t>(source->size()) * stated_lengths; }
  };

  SndfileReader(const SndfileLibrary& library, ByteSource& source, std::string_view format)
      : library_(library), stream_{&source} {
    info_.format = format;
  }
  static SndfileIo io();
  Result<void> start();
  Result<void> complete_mp3();
  Result<void> seek(std::uint64_t frame);
  Result<std::uint64_t> start_of_decoding(std::uint64_t begin);
  template <typename T, typename Read>
  Result<void> read_frames(std::uint64_t begin, std::span<T> out, Read read);
  std::unexpected<Error> failed(const std::string& what) const;

  const SndfileLibrary& library_;
  Stream stream_;
  void* file_ = nullptr;
  std::uint64_t next_ = 0;                  // frame
  std::optional<std::uint64_t> counted_;    // frames, if the file does not state them
  std::optional<std::uint64_t> last_page_;  // of Vorbis: its first frame
  std::vector<float> floats_;
};

}  // namespace feedline::decode
