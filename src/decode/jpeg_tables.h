// SPDX-License-Identifier: Apache-2.0
#pragma once

// A libjpeg decompressor keeps its tables from image to image. A file that leaves a table out must not be decoded with
// the one of whatever image came before it: so tables are blanked before a header is read, and blank ones found after.

#include <cstdio>

#include <jpeglib.h>

namespace feedline::decode {

void blank_tables(jpeg_decompress_struct& jpeg);
bool is_blank(const JQUANT_TBL* table);  // false for null: libjpeg knows what to do without a table
// Does the scan that is about to be decoded use a blank table?
bool scan_lacks_tables(const jpeg_decompress_struct& jpeg);

}  // namespace feedline::decode
