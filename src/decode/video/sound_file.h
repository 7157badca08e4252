// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "decode/audio/audio_reader.h"
#include "decode/audio/byte_source.h"
#include "feedline/error.h"

namespace feedline::decode {

// Opens the sound of a file in any container that FFmpeg knows, such as AAC in MP4. Samples and length are those of
// FFmpeg's decoder, without those that the encoder added or an edit list excludes. The file's packets are scanned once;
// later readers of the same file, by ByteSource::key(), use the stored track. The source must outlive the reader.
// Threads may open files concurrently; a source and its reader are used by one thread at a time.
// kData: as for scan_sound(). kConfig: FFmpeg is not installed.
Result<std::unique_ptr<AudioReader>> open_sound_file(ByteSource& source);

// kConfig: FFmpeg is not installed; the message explains how to install it.
Result<void> check_sound_library();

}  // namespace feedline::decode
