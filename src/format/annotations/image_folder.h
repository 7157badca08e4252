// SPDX-License-Identifier: Apache-2.0
#pragma once

// Image files by their paths, which annotations name.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "feedline/error.h"
#include "feedline/sample_files.h"
#include "format/annotations/annotation_part.h"
#include "memory/record.h"

namespace feedline::format {

// "a/b" of "a/b/c" and "a/b/c/"; "." of "c", and "/" of "/c".
std::string folder_of(std::string_view path);
// "c.json" of "a/b/c.json".
std::string_view last_of(std::string_view path);
// Without the extension that it has behind its last slash.
std::string_view stem_of(std::string_view path);
// "jpg" of "a/b.JPG"; empty: there is none.
std::string extension_of(std::string_view path);

// Sets the bytes of every image field and adds them to record.bytes_read. kData: there are none, or more than the
// record takes. Requires: a field of the record for each of `fields`.
Result<void> take_image(std::span<const PartField> fields, std::span<const std::byte> bytes, memory::Record& record);

// What `feedline pack` copies of a sample: a file for each field as it was filled in. path: of the image; its extension
// is the image's, and without that it is the key. kConfig: of masks that were drawn no file is made.
Result<SampleFiles> files_of(std::span<const PartField> fields, std::string_view path, const memory::Record& record);
SampleFileSizes sizes_of(const SampleFiles& files);

}  // namespace feedline::format
