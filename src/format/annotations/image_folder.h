// SPDX-License-Identifier: Apache-2.0
#pragma once

// Image files that annotations refer to by path.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "feedline/error.h"
#include "feedline/sample_files.h"
#include "format/annotations/annotation_part.h"
#include "memory/record.h"

namespace feedline::format {

// Returns "a/b" for "a/b/c" and "a/b/c/", "." for "c", and "/" for "/c".
std::string folder_of(std::string_view path);
// Returns "c.json" for "a/b/c.json".
std::string_view last_of(std::string_view path);
// Removes the extension of the last component.
std::string_view stem_of(std::string_view path);
// Returns "jpg" for "a/b.JPG", or an empty string if there is no extension.
std::string extension_of(std::string_view path);

// Sets the data of every image field and adds its size to record.bytes_read. Fails with kData if the image is empty or
// the record would exceed its size limit. Requires: the record has one field for each element of `fields`.
Result<void> take_image(std::span<const PartField> fields, std::span<const std::byte> bytes, memory::Record& record);

// Returns the files that `feedline pack` writes for a sample, one for each field of the record. `path` is the path of
// the image; its extension and the sample's key are derived from this path. Fails with kConfig for masks drawn from
// outlines, which cannot be written as files.
Result<SampleFiles> files_of(std::span<const PartField> fields, std::string_view path, const memory::Record& record);

}  // namespace feedline::format
